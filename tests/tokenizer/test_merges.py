"""Continued merges, counted by hand."""

from tolka.tokenizer.merges import Merge, continued_merges, merge

WORDS = {("l", "o", "w"): 5, ("l", "o", "w", "er"): 2, ("n", "e", "w"): 3, ("x", "y"): 1}


def test_the_most_frequent_pair_first_and_of_equal_ones_the_first_in_the_alphabet() -> None:
    """lo and ow occur 7 times, ew and ne 3 times, lower twice, xy once, which is too seldom."""
    assert continued_merges(WORDS, {}, 2, lambda text: True) == [
        Merge("lo", ("l", "o"), 7, 0),  # all of them are in `low` afterwards
        Merge("low", ("lo", "w"), 7, 7),
    ]
    found = continued_merges(WORDS, {}, 9, lambda text: True)
    assert [merge.text for merge in found] == ["lo", "low", "ew", "new", "lower"]


def test_what_is_not_allowed_is_not_merged() -> None:
    found = continued_merges(WORDS, {}, 9, lambda text: "w" not in text)
    assert [(merge.text, merge.occurrences) for merge in found] == [("lo", 7), ("ne", 3)]


def test_neighbours_merge_by_score_and_from_the_left() -> None:
    assert merge(["a", "b", "c"], {"ab": 1.0, "bc": 2.0}) == ("a", "bc")
    assert merge(["a", "a", "a"], {"aa": 0.0}) == ("aa", "a")
    assert merge(["a"], {}) == ("a",)
