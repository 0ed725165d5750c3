"""Searches on a model whose probabilities are all known."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from known_model import LENGTHS, SOURCE, TABLE, A, B, C, Known
from rows import each_row

from tolka.data.batch import BOS, EOS
from tolka.errors import ConfigError, DataError
from tolka.search.base import SearchConfig, extensions, next_log_probabilities
from tolka.search.beam import BeamConfig
from tolka.search.constraints.rules import banned_phrases
from tolka.search.greedy import GreedyConfig
from tolka.search.hypothesis import Wish
from tolka.search.options import SEARCHES, DiverseConfig
from tolka.search.sampling import SamplingConfig


def test_greedy_takes_the_likeliest_token() -> None:
    (found,), _ = GreedyConfig().build().search(Known({**TABLE, A: {EOS: 0.4, A: 0.35, B: 0.25}}), SOURCE, LENGTHS)
    assert (found.tokens, found.finished) == ([A], True)
    assert found.log_probability == pytest.approx(math.log(0.6 * 0.4), abs=1e-5)


def test_beam_finds_what_greedy_misses() -> None:
    best, second = BeamConfig(beam_size=2, length_penalty=0.0).build().search(Known(TABLE), SOURCE, LENGTHS)[0][:2]
    assert best.tokens == [B]
    assert best.log_probability == pytest.approx(math.log(0.4 * 0.99), abs=1e-5)
    assert second.tokens == [A]
    assert best.score == best.log_probability


@pytest.mark.parametrize("config", [GreedyConfig(max_length_extra=1), BeamConfig(beam_size=2, max_length_extra=1)])
def test_what_never_ends_stops_at_the_limit_and_says_so(config: GreedyConfig) -> None:
    (found, *_), _ = config.build().search(Known({BOS: {A: 1.0}, A: {A: 0.9, B: 0.1}, B: {A: 1.0}}), SOURCE, LENGTHS)
    assert found.tokens == [A] * 5  # 2 * 2 + 1
    assert not found.finished


def test_special_symbols_are_never_chosen() -> None:
    for config in (GreedyConfig(), BeamConfig(beam_size=4)):
        model = Known({BOS: {0: 0.5, BOS: 0.3, A: 0.2}, A: {EOS: 1.0}})
        (found, *_), _ = config.build().search(model, SOURCE, LENGTHS)
        assert found.tokens == [A]


def test_several_hypotheses_end_in_one_step() -> None:
    table = {BOS: {A: 0.4, B: 0.35, C: 0.25}, A: {EOS: 0.7, A: 0.3}, B: {EOS: 1.0}, C: {EOS: 0.9, A: 0.1}}
    for sentence in BeamConfig(beam_size=3, length_penalty=0.0).build().search(Known(table), SOURCE, LENGTHS):
        assert [hypothesis.tokens for hypothesis in sentence] == [[B], [A], [C]]
        expected = [math.log(0.35), math.log(0.4 * 0.7), math.log(0.25 * 0.9)]
        assert [hypothesis.log_probability for hypothesis in sentence] == pytest.approx(expected, abs=1e-5)
        assert all(hypothesis.finished for hypothesis in sentence)


def test_poor_hypotheses_that_finish_early_do_not_end_the_search() -> None:
    """[] and [A] finish in the first two steps, while A B is better with its length so far, and better in the end."""
    table = {BOS: {A: 0.8, EOS: 0.15, B: 0.05}, A: {B: 0.9, EOS: 0.1}, B: {C: 0.9, EOS: 0.1}, C: {EOS: 1.0}}
    config = BeamConfig(beam_size=2, length_normalization="plain")
    (best, *_), _ = config.build().search(Known(table), SOURCE, LENGTHS)
    assert best.tokens == [A, B, C]
    assert best.score == pytest.approx(math.log(0.8 * 0.9 * 0.9) / 4, abs=1e-5)


@each_row("config", [GreedyConfig(), BeamConfig(), DiverseConfig(), SamplingConfig()])
@each_row("number", [math.nan, math.inf])
def test_without_finite_scores_there_is_no_translation(config: SearchConfig, number: float) -> None:
    """Wherever one comes up; sentences beside it are translated."""

    class Broken(Known):
        def logits(self, features: Any) -> Any:
            logits = super().logits(features).clone()
            logits[0, :, B] = number
            return logits

    broken, (found, *_) = config.build().search(Broken({BOS: {A: 1.0}, A: {EOS: 1.0}}), SOURCE, LENGTHS)
    assert (broken, found.tokens) == ([], [A])


@each_row("vocabulary", [3, 255, 256, 257, 300, 511, 512, 8000])
@each_row("count", [1, 4, 700])
def test_the_likeliest_are_those_of_a_full_sort(vocabulary: int, count: int) -> None:
    torch.manual_seed(vocabulary)
    model = Known({})
    features = torch.randn(3, 2, vocabulary)
    log_p = features.log_softmax(dim=-1)
    total = torch.tensor([[-1.0, -2.0], [-1.0, float("-inf")], [-3.0, -0.5]])
    found = extensions(next_log_probabilities(model, features.clone()), total, count)
    sums = log_p + total[..., None]
    sums[..., :2] = float("-inf")  # <pad> and <s>
    wanted = sums.flatten(1).sort(dim=1, descending=True).values[:, : min(count, 2 * vocabulary)]
    assert torch.equal(found.log_probability, wanted)
    possible = found.log_probability > float("-inf")
    places = found.parent * vocabulary + found.token
    assert torch.equal(sums.flatten(1).gather(1, places)[possible], wanted[possible])
    assert int(places.max()) < 2 * vocabulary
    assert int(found.token.max()) < vocabulary


def test_registered_names_and_complaints() -> None:
    assert {"beam", "diverse", "greedy", "sampling"} <= set(SEARCHES.names())
    with pytest.raises(ConfigError, match=r"unknown search 'beem'\. Did you mean 'beam'"):
        SEARCHES.get("beem")
    with pytest.raises(ConfigError, match=r"search.beam_size \(0\)"):
        BeamConfig(beam_size=0)
    with pytest.raises(ConfigError, match=r"search.length_penalty \(-1\)"):
        BeamConfig(length_penalty=-1)
    with pytest.raises(ConfigError, match="nothing could be said"):
        GreedyConfig(max_length_factor=0, max_length_extra=0)
    with pytest.raises(ConfigError, match=r"search.n_best \(6\) must be at most search.beam_size \(5\)"):
        BeamConfig(n_best=6)
    with pytest.raises(ConfigError, match=r"search.length_normalization \('plane'\) is unknown. Did you mean 'plain'"):
        BeamConfig(length_normalization="plane")
    with pytest.raises(ConfigError, match=r"search.beam_size \(6\) must be a multiple of search.groups \(4\)"):
        DiverseConfig(groups=4)
    with pytest.raises(ConfigError, match=r"search.min_length \(-1\) must be 0 \(off\) or more"):
        DiverseConfig(min_length=-1)


@each_row("config", [GreedyConfig(), BeamConfig(), DiverseConfig(), SamplingConfig()])
@each_row(
    ("wish", "complaint"),
    [
        (Wish(prefix=(A,) * 24), "a prefix of 24 subwords does not fit into a translation of at most 23: shorten it"),
        (Wish(prefix=(A, EOS)), "a prefix has a special symbol in it"),
        (Wish(banned=((A, BOS),)), "a banned phrase has a special symbol in it"),
        (Wish(banned=((),)), "a banned phrase has no subwords"),
    ],
)
def test_wishes_that_cannot_be(config: SearchConfig, wish: Wish, complaint: str) -> None:
    """The sources have 2 tokens, their translations 2 * 2 + 20 at most, of which one is `</s>`."""
    with pytest.raises(DataError, match=complaint):
        config.build().search(Known(TABLE), SOURCE, LENGTHS, [Wish(), wish])


def test_a_prefix_may_fill_a_translation() -> None:
    table = {BOS: {A: 0.5, B: 0.5}, A: {A: 0.5, EOS: 0.5}, B: {B: 1.0}}
    for config in (GreedyConfig(), BeamConfig(), DiverseConfig(), SamplingConfig()):
        (_, (found, *_)) = config.build().search(Known(table), SOURCE, LENGTHS, [Wish(), Wish((A,) * 23)])
        assert found.tokens[:23] == [A] * 23


@pytest.mark.parametrize("beam_size", [2, 3])
def test_n_best_lists_are_the_best_of_what_a_full_search_finishes(beam_size: int) -> None:
    """[B] (0.81) is certain to be the best after 2 steps, when neither [B, C] (0.09) nor [A, C] (0.08) is finished."""
    table = {BOS: {B: 0.9, A: 0.1}, B: {EOS: 0.9, C: 0.1}, A: {A: 0.2, C: 0.8}, C: {EOS: 1.0}}
    for n_best in range(1, beam_size + 1):
        config = BeamConfig(beam_size=beam_size, n_best=n_best, length_penalty=0.0)
        found = config.build().search(Known(table), SOURCE, LENGTHS)[0]
        assert [each.tokens for each in found[: config.returned]] == [[B], [B, C], [A, C]][:n_best]


def test_length_normalization() -> None:
    """`</s>` at once has probability 0.4; [A] 0.6 * 0.6 = 0.36, two tokens: plain division of the logs prefers it."""
    table = {BOS: {EOS: 0.4, A: 0.6}, A: {EOS: 0.6, A: 0.4}}
    for normalization, penalty, best, divisor in (
        ("none", 1.0, [], 1.0),
        ("plain", 0.0, [], 1.0),
        ("plain", 1.0, [A], 2.0),
        ("gnmt", 1.0, [A], 7 / 6),
        ("gnmt", 0.05, [], 1.0),
    ):
        config = BeamConfig(beam_size=3, length_normalization=normalization, length_penalty=penalty)
        found = config.build().search(Known(table), SOURCE, LENGTHS)[0][0]
        assert found.tokens == best, normalization
        assert found.score == pytest.approx(found.log_probability / divisor, rel=1e-5)


@each_row(
    ("factor", "extra", "length", "limit"),
    [(0.3, 0, 50, 15), (1.1, 0, 10, 11), (1.1, 0, 11, 13), (2.0, 20, 7, 34), (0.0, 3, 9, 4), (1e-30, 0, 9, 1)],
)
def test_the_length_limit_is_rounded_up_once(factor: float, extra: int, length: int, limit: int) -> None:
    """ceil(factor * length), at least 1, plus extra, without what a binary fraction adds to 0.3 or 1.1."""
    config = GreedyConfig(max_length_factor=factor, max_length_extra=extra)
    assert config.limits(torch.tensor([length])).tolist() == [limit]


@pytest.mark.parametrize(
    ("config", "options", "complaint"),
    [
        (BeamConfig, {"length_normalization": "none", "length_penalty": 5.0}, "search.length_penalty (5.0) has no eff"),
        (
            DiverseConfig,
            {"length_normalization": "none", "length_penalty": 5.0},
            "with search.length_normalization=none",
        ),
    ],
)
def test_settings_without_effect_are_refused(
    config: type[SearchConfig], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as error:
        config(**options)
    assert complaint in str(error.value)


def test_settings_at_their_defaults_are_not_refused() -> None:
    """As a saved configuration has them; nor is a penalty that is off where there is none."""
    for config in (BeamConfig(), BeamConfig(length_normalization="none")):
        assert type(config)(**dataclasses.asdict(config)) == config
    assert BeamConfig(length_normalization="none", length_penalty=0.0).penalty(7) == 1.0


def test_the_tables_of_banned_phrases_are_made_once() -> None:
    """However many sentences and batches have the list."""
    phrases = tuple((4 + i % 90, 4 + i // 90, 7) for i in range(2000))
    made = 0

    class Counted(tuple[tuple[int, ...], ...]):
        def __iter__(self) -> Any:
            nonlocal made
            made += 1
            return super().__iter__()

    banned = Counted(phrases)
    for _ in range(3):
        [table] = banned_phrases([Wish(banned=banned)] * 50, torch.device("cpu"))
    assert made == 1
    log_p = torch.zeros(1, 2, 100)
    table.ban(log_p, torch.tensor([[[5, 5, 4], [4, 8, 99]]]), torch.tensor([0]))
    assert (log_p < 0).nonzero().tolist() == [[0, 0, 7]]


def test_phrases_of_some_sentences_only() -> None:
    lists = [((4,), (5, 6), (7, 5, 6)), ((4,), (5, 6)), ((4,),), ()]
    for chosen in (lists, lists[:3], lists[:1], lists[1:2] * 2):
        log_p = torch.zeros(len(chosen), 2, 9)
        tokens = torch.tensor([[7, 5], [5, 5]]).expand(len(chosen), 2, 2)
        for table in banned_phrases([Wish(banned=banned) for banned in chosen], torch.device("cpu")):
            table.ban(log_p, tokens, torch.arange(len(chosen)))
        for row, banned in enumerate(chosen):
            for place, context in enumerate(((7, 5), (5, 5))):
                expected = {each[-1] for each in banned if each[:-1] == context[3 - len(each) :][: len(each) - 1]}
                assert set((log_p[row, place] < 0).nonzero()[:, 0].tolist()) == expected
