"""Sentences made of two: which there can be, how many, and that they are new."""

from itertools import pairwise

from tolka.recipes.texts import recombine


def test_two_sentences_that_share_a_word_make_two_others() -> None:
    assert {*recombine(["a b c", "x b y"], 9)} == {"a b y", "x b c"}
    assert {*recombine(["abc", "xby"], 9, joiner="")} == {"aby", "xbc"}


def test_there_are_as_many_as_asked_for_and_each_is_new() -> None:
    lines = [f"{a} we {b} so {c}" for a in "abcd" for b in "efgh" for c in "ijkl" if (a, b, c) != ("a", "e", "i")]
    made = [*recombine([*lines, "", "alone"], 40)]
    assert made == ["a we e so i"]  # the one that is missing
    few = ["one of them is here", "all of it is there", "none of us is one of you"]
    made = [*recombine(few, 7)]
    assert len({*made} - {*few}) == len(made) == 7
    # Any two words beside each other were so before.
    before = {two for line in few for two in pairwise(line.split())}
    assert {two for line in made for two in pairwise(line.split())} <= before
    assert made == [*recombine(few, 7)]


def test_sentences_that_share_nothing_make_none() -> None:
    assert [*recombine(["a b", "c d", "e"], 5), *recombine([], 5), *recombine([""], 5, joiner="")] == []
