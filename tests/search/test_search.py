"""Searches on a model whose probabilities are all known."""

import math

import pytest
import torch
from torch import Tensor, nn

from tolka.data.batch import BOS, EOS, Batch
from tolka.errors import ConfigError
from tolka.models.base import DecoderState, Seq2Seq
from tolka.search.base import SEARCHES, most_likely, most_likely_token
from tolka.search.beam import BeamConfig
from tolka.search.greedy import GreedyConfig

C, A, B = 3, 4, 5
# P(next | last): greedy takes A (0.6), which then spreads out; B (0.4) surely ends.
TABLE = {BOS: {A: 0.6, B: 0.4}, A: {EOS: 0.36, A: 0.34, B: 0.3}, B: {EOS: 0.99, A: 0.01}}


class Prefix(DecoderState):
    """An empty state: only the last token matters."""

    def select(self, rows: Tensor) -> "Prefix":
        return self


class Known(Seq2Seq):
    """A first-order chain with the probabilities of TABLE."""

    vocabulary_size = 6

    def __init__(self, table: dict[int, dict[int, float]]) -> None:
        super().__init__()
        self.table = torch.zeros(6, 6)
        for last, following in table.items():
            self.table[last] = float("-inf")
            for token, p in following.items():
                self.table[last, token] = math.log(p)

    def forward(self, batch: Batch) -> Tensor:
        return batch.valid(self.table[batch.target_in])

    def logits(self, features: Tensor) -> Tensor:
        return features.clone()

    def logits_parameters(self) -> list[nn.Parameter]:
        return []

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        return Prefix()

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.table[token], state


SOURCE, LENGTHS = torch.tensor([[4, EOS], [5, EOS]]), torch.tensor([2, 2])


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


def test_the_length_penalty_favours_longer_ones() -> None:
    """Ending at once has probability 0.5, ending after one A 0.45: the penalty reverses the order."""
    table = {BOS: {EOS: 0.5, A: 0.5}, A: {EOS: 0.9, A: 0.1}}
    for penalty, expected in ((0.0, []), (2.0, [A])):
        config = BeamConfig(beam_size=3, length_penalty=penalty)
        assert config.build().search(Known(table), SOURCE, LENGTHS)[0][0].tokens == expected
    assert BeamConfig(length_penalty=2.0).penalty(2) == pytest.approx((7 / 6) ** 2)


@pytest.mark.parametrize("config", [GreedyConfig(max_length_extra=1), BeamConfig(beam_size=2, max_length_extra=1)])
def test_what_never_ends_stops_at_the_limit_and_says_so(config: GreedyConfig) -> None:
    (found, *_), _ = config.build().search(Known({BOS: {A: 1.0}, A: {A: 0.9, B: 0.1}, B: {A: 1.0}}), SOURCE, LENGTHS)
    assert found.tokens == [A] * 5  # 2 * 2 + 1
    assert not found.finished


def test_special_symbols_are_never_chosen() -> None:
    for config in (GreedyConfig(), BeamConfig(beam_size=4)):
        for scored in (True, False):
            model = Known({BOS: {0: 0.5, BOS: 0.3, A: 0.2}, A: {EOS: 1.0}})
            (found, *_), _ = config.build().search(model, SOURCE, LENGTHS, scored)
            assert found.tokens == [A]


def test_several_hypotheses_end_in_one_step() -> None:
    table = {BOS: {A: 0.4, B: 0.35, C: 0.25}, A: {EOS: 0.7, A: 0.3}, B: {EOS: 1.0}, C: {EOS: 0.9, A: 0.1}}
    for sentence in BeamConfig(beam_size=3, length_penalty=0.0).build().search(Known(table), SOURCE, LENGTHS):
        assert [hypothesis.tokens for hypothesis in sentence] == [[B], [A], [C]]
        expected = [math.log(0.35), math.log(0.4 * 0.7), math.log(0.25 * 0.9)]
        assert [hypothesis.log_probability for hypothesis in sentence] == pytest.approx(expected, abs=1e-5)
        assert all(hypothesis.finished for hypothesis in sentence)


@pytest.mark.parametrize("vocabulary", [3, 255, 256, 257, 300, 511, 512, 8000])
@pytest.mark.parametrize("count", [1, 4, 700])
def test_the_likeliest_are_those_of_a_full_sort(vocabulary: int, count: int) -> None:
    torch.manual_seed(vocabulary)
    model = Known({})
    features = torch.randn(3, 2, vocabulary)
    log_p = features.log_softmax(dim=-1)
    total = torch.tensor([[-1.0, -2.0], [-1.0, float("-inf")], [-3.0, -0.5]])
    found = most_likely(model, features, total, count)
    sums = log_p + total[..., None]
    sums[..., :2] = float("-inf")  # <pad> and <s>
    wanted = sums.flatten(1).sort(dim=1, descending=True).values[:, : min(count, 2 * vocabulary)]
    assert torch.equal(found.log_probability, wanted)
    possible = found.log_probability > float("-inf")
    places = found.parent * vocabulary + found.token
    assert torch.equal(sums.flatten(1).gather(1, places)[possible], wanted[possible])
    assert int(places.max()) < 2 * vocabulary
    assert int(found.token.max()) < vocabulary
    features[..., :2] = float("-inf")
    assert torch.equal(most_likely_token(model, features[:, :1]), features[:, :1].argmax(dim=-1))


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


@pytest.mark.parametrize(
    ("factor", "extra", "length", "limit"),
    [(0.3, 0, 50, 15), (1.1, 0, 10, 11), (1.1, 0, 11, 13), (2.0, 20, 7, 34), (0.0, 3, 9, 4), (1e-30, 0, 9, 1)],
)
def test_the_length_limit_is_rounded_up_once(factor: float, extra: int, length: int, limit: int) -> None:
    """ceil(factor * length), at least 1, plus extra, without what a binary fraction adds to 0.3 or 1.1."""
    config = GreedyConfig(max_length_factor=factor, max_length_extra=extra)
    assert config.limits(torch.tensor([length])).tolist() == [limit]
