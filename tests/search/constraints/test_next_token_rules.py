"""What is forbidden and what is forced, from a hypothesis's first token to its last."""

import pytest
import torch
from rows import each_row
from torch import Tensor

from tolka.errors import DataError
from tolka.search.constraints.rules import Rules
from tolka.search.hypothesis import Wish
from tolka.search.options import GreedyConfig
from tolka.tokenizer.special_tokens import EOS

A, B, C = 4, 5, 6
TOKENS = {EOS, 3, A, B, C}  # that have a probability: all but <pad> and <s>
LENGTHS = torch.tensor([3, 3])  # of two sources; each translation has at most 3 subwords and </s>


def rules(*wishes: Wish, min_length: int = 0, ngram: int = 0) -> Rules:
    config = GreedyConfig(
        max_length_factor=0.0, max_length_extra=3, min_length=min_length, no_repeat_ngram=ngram
    )  # at least 1, and 3 more: 4 with </s>
    return Rules(config, LENGTHS, wishes)


def before() -> Tensor:
    """log_p (2 sentences, 1 hypothesis, 7 tokens): -2 for </s>, -3 for the next, and so on."""
    log_p = -torch.arange(7.0).expand(2, 1, 7).clone()
    return log_p.masked_fill_(torch.tensor([token not in TOKENS for token in range(7)]), float("-inf"))


def allowed(made: Rules, first: list[int], second: list[int], sentences: tuple[int, ...] = (0, 1)) -> list[set[int]]:
    """The tokens that may follow in each sentence; those keep their log-probability."""
    log_p = before()
    made.apply(log_p, torch.tensor([[first], [second]], dtype=torch.long), torch.tensor(sentences))
    kept = log_p > float("-inf")
    assert torch.equal(log_p[kept], before()[kept])
    return [{*row[0].nonzero().flatten().tolist()} for row in kept]


def test_without_rules_nothing_is_to_do() -> None:
    assert not rules()
    assert not rules(Wish(), Wish())
    assert rules(min_length=1)
    assert rules(ngram=1)
    assert rules(Wish((A,)), Wish())
    assert rules(Wish(), Wish(banned=((A,),)))


@each_row(
    ("least", "length", "may_end"),
    [(1, 0, False), (1, 1, True), (2, 1, False), (2, 2, True), (3, 2, False), (3, 3, True), (99, 2, False)],
)
def test_the_end_comes_after_the_least_length(least: int, length: int, may_end: bool) -> None:
    expected = TOKENS if may_end else TOKENS - {EOS}
    assert allowed(rules(min_length=least), [A] * length, [B] * length) == [expected, expected]


def test_at_the_limit_the_end_is_possible_whatever_the_least_length() -> None:
    """Three subwords are there, and of four tokens the last must be </s>."""
    assert allowed(rules(min_length=99), [A, B, C], [A, B, C]) == [TOKENS, TOKENS]


def test_repeated_sequences() -> None:
    assert allowed(rules(ngram=1), [], []) == [TOKENS, TOKENS]
    assert allowed(rules(ngram=1), [A, B], [C, C]) == [TOKENS - {A, B}, TOKENS - {C}]
    # The first one would repeat "A B"; the second has "A B" and "B C", and neither after C.
    assert allowed(rules(ngram=2), [A, B, A], [A, B, C]) == [TOKENS - {B}, TOKENS]
    assert allowed(rules(ngram=2), [A], [B]) == [TOKENS, TOKENS]
    assert allowed(rules(ngram=3), [A, B], [A, B]) == [TOKENS, TOKENS]
    assert allowed(rules(ngram=2), [A, A], [A, A]) == [TOKENS - {A}, TOKENS - {A}]


def test_a_prefix_is_forced_from_the_first_token_to_its_own_last() -> None:
    made = rules(Wish((A, B)), Wish())
    assert allowed(made, [], []) == [{A}, TOKENS]
    assert allowed(made, [A], [C]) == [{B}, TOKENS]
    assert allowed(made, [A, B], [C, C]) == [TOKENS, TOKENS]


def test_a_shorter_prefix_ends_before_a_longer_one() -> None:
    made = rules(Wish((A, B)), Wish((C,)))
    assert allowed(made, [], []) == [{A}, {C}]
    assert allowed(made, [A], [C]) == [{B}, TOKENS]


def test_a_prefix_belongs_to_a_sentence_wherever_search_has_moved_it() -> None:
    made = rules(Wish((A,)), Wish((B,)))
    assert allowed(made, [], [], sentences=(1, 0)) == [{B}, {A}]
    assert allowed(made, [], [], sentences=(1, 1)) == [{B}, {B}]


def test_a_prefix_goes_before_all_other_rules() -> None:
    made = rules(Wish((A, A), banned=((A,),)), Wish((A, A)), ngram=1, min_length=1)
    assert allowed(made, [], []) == [{A}, {A}]
    assert allowed(made, [A], [A]) == [{A}, {A}]
    assert allowed(made, [A, A], [A, A]) == [TOKENS - {A}, TOKENS - {A}]


def test_a_prefix_may_take_all_but_the_last_place() -> None:
    """Three subwords and </s> fit, four do not."""
    assert allowed(rules(Wish((A, B, C)), Wish()), [A, B], [A, B]) == [{C}, TOKENS]
    with pytest.raises(DataError, match="a prefix of 4 subwords does not fit into a translation of at most 3"):
        rules(Wish(), Wish((A, B, C, A)))
    with pytest.raises(DataError, match="a prefix has a special symbol in it"):
        rules(Wish((A, EOS)), Wish())


def test_banned_phrases_at_the_first_and_at_later_places() -> None:
    made = rules(Wish(banned=((A,), (B, C))), Wish(banned=((B, C, C),)))
    assert allowed(made, [], []) == [TOKENS - {A}, TOKENS]
    assert allowed(made, [B], [B]) == [TOKENS - {A, C}, TOKENS]
    assert allowed(made, [B, C], [B, C]) == [TOKENS - {A}, TOKENS - {C}]
    assert allowed(made, [C, C], [C, C]) == [TOKENS - {A}, TOKENS]


def test_where_all_is_forbidden_the_hypothesis_ends() -> None:
    """With its own log-probability of </s>, which the least length had forbidden as well."""
    every = Wish(banned=((3,), (A,), (B,), (C,)))
    assert allowed(rules(every, Wish(), min_length=3), [A], [A]) == [{EOS}, TOKENS - {EOS}]
