"""What is done here around CTranslate2's searches, whose answers are written by hand."""

import math
from collections.abc import Sequence

import pytest
from fake_ctranslate2 import VOCABULARY, FakeTranslator

from tolka.engines.ctranslate2_search import CTranslate2Search, unsupported_reason
from tolka.errors import DataError
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options import BeamConfig, GreedyConfig, MbrConfig, SamplingConfig, SearchConfig
from tolka.tokenizer.language_tags import Tags

A, B, C = 4, 5, 6


def search(
    translator: FakeTranslator, config: SearchConfig, limits: Sequence[int] = (9,), wishes: Sequence[Wish] = ()
) -> list[list[Hypothesis]]:
    return CTranslate2Search(translator, VOCABULARY, config, 0)([[A]] * len(limits), limits, wishes, scored=False)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (GreedyConfig(), ""),
        (BeamConfig(beam_size=3, n_best=2), ""),
        (SamplingConfig(top_k=5), ""),
        (MbrConfig(), "CTranslate2 has no search=mbr"),
        (BeamConfig(min_length=2), "CTranslate2 is not used with search.min_length"),
        (SamplingConfig(top_k=1), "CTranslate2 does not sample with search.top_k=1, which is search=greedy"),
    ],
)
def test_searches_with_other_results_are_named(config: SearchConfig, reason: str) -> None:
    assert unsupported_reason(config) == reason


def test_greedy_search_asks_for_no_scores() -> None:
    translator = FakeTranslator([[("▁a ▁b </s>", -1.0)]])
    [[best]] = search(translator, GreedyConfig())
    assert (best.tokens, best.finished, math.isnan(best.score)) == ([A, B], True, True)
    assert translator.calls[0]["return_scores"] is False


def test_a_translation_without_its_end_is_not_finished() -> None:
    [[best]] = search(FakeTranslator([[("▁a ▁b", -1.0)]]), GreedyConfig(), [2])
    assert (best.tokens, best.finished) == ([A, B], False)


def test_a_beam_is_ranked_by_tolka_s_length_penalty() -> None:
    """-2 / 2 tokens is less likely than -2.7 / 3 tokens, each with its end."""
    config = BeamConfig(beam_size=2, n_best=1, length_normalization="plain", length_penalty=1.0)
    translator = FakeTranslator([[("▁a </s>", -2.0), ("▁b ▁c </s>", -2.7)]])
    [[best]] = search(translator, config)
    assert (best.tokens, best.log_probability) == ([B, C], -2.7)
    assert best.score == pytest.approx(-0.9)


@pytest.mark.parametrize(("log_probability", "is_repeated"), [(-1.2, False), (-3.0, True)])
def test_a_beam_that_may_have_lost_a_better_hypothesis_is_searched_again(
    log_probability: float, is_repeated: bool
) -> None:
    """One hypothesis is cut off at six tokens. In its place one of -3.1 / 6 may have finished: above -3 / 3 only."""
    config = BeamConfig(beam_size=2, n_best=1, length_normalization="plain", length_penalty=1.0)
    poor = [("▁c </s>", -2.95), ("▁b </s>", -2.96)]
    first = [("▁a ▁b </s>", log_probability), ("▁a ▁b ▁c ▁a ▁b ▁c", -2.9), *poor]
    translator = FakeTranslator([first], [[*first, ("▁c ▁c ▁c ▁c ▁c </s>", -3.1)]])
    [[best]] = search(translator, config, [6])
    assert best.tokens == ([C] * 5 if is_repeated else [A, B])
    assert [call["num_hypotheses"] for call in translator.calls] == ([4, 6] if is_repeated else [4])


def test_only_sentences_beyond_their_own_limit_are_searched_again() -> None:
    translator = FakeTranslator([[("▁a ▁b ▁c </s>", -1.0)], [("▁a ▁b ▁c </s>", -1.0)]], [[("▁a ▁b", -1.0)]])
    found = search(translator, GreedyConfig(), [2, 4])
    assert [[each.tokens for each in pool] for pool in found] == [[[A, B]], [[A, B, C]]]
    assert [(len(call["sources"]), call["max_decoding_length"]) for call in translator.calls] == [(2, 4), (1, 2)]


def test_special_tokens_are_forbidden_once_a_result_has_one() -> None:
    translator = FakeTranslator([[("▁a <pad> </s>", -1.0)]], [[("▁a </s>", -1.0)]])
    [[best]] = search(translator, GreedyConfig())
    assert best.tokens == [A]
    assert "suppress_sequences" not in translator.calls[0]
    assert translator.calls[1]["suppress_sequences"] == [["<pad>"], ["<s>"]]


def test_tags_are_forbidden_once_a_result_has_one() -> None:
    """But not the one that is forced at the beginning."""
    translator = FakeTranslator([[("▁c ▁a ▁b </s>", -1.0)]], [[("▁c ▁a </s>", -1.0)]])
    tags = Tags((), (C,), (B, C))
    [[best]] = CTranslate2Search(translator, VOCABULARY, GreedyConfig(), 0, tags)([[A]], [9], [], scored=False)
    assert best.tokens == [A]
    assert "suppress_sequences" not in translator.calls[0]
    assert translator.calls[1]["suppress_sequences"] == [["<pad>"], ["<s>"], ["▁b"], ["▁c"]]
    assert translator.calls[1]["target_prefix"] == [["▁c"]]


def test_the_score_of_a_prefix_is_added() -> None:
    translator = FakeTranslator([[("▁a ▁b </s>", -1.0)]], token_scores=[-0.5, -8.0])
    config = BeamConfig(beam_size=1, n_best=1, length_penalty=0.0)
    [[best]] = search(translator, config, [9], [Wish(prefix=(A,))])
    assert (translator.calls[0]["target_prefix"], best.log_probability) == ([["▁a"]], -1.5)


def test_hypotheses_without_a_finite_score_are_dropped() -> None:
    """The last one has left its prefix."""
    translator = FakeTranslator([[("▁a </s>", math.nan), ("▁b </s>", -math.inf), ("▁c </s>", -2e9)]])
    assert search(translator, BeamConfig(beam_size=3, n_best=1)) == [[]]


def test_a_prefix_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="a prefix of 2 subwords does not fit into a translation of at most 1"):
        search(FakeTranslator(), GreedyConfig(), [2], [Wish(prefix=(A, B))])
