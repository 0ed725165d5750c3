"""Loss by position: a model whose probabilities are written down by hand, and a real one against teacher forcing."""

import math
from dataclasses import dataclass
from typing import Self

import pytest
import torch
from torch import Tensor, nn

from tolka.data.batch import BOS, EOS, Batch, collate
from tolka.losses.cross_entropy import token_nll
from tolka.models.base import DecoderState, Seq2Seq
from tolka.models.transformer import TransformerConfig
from transformer_figures.exposure_bias import LossByPosition, loss_by_position

A, B, C = 4, 5, 6
SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [5, 5, 4, 10, 6, 9, 7]]
TARGETS = [[8, 7, 6], [10, 9, 4, 5, 11, 6], [4], [7, 9]]


@dataclass(frozen=True)
class NoMemory(DecoderState):
    """The state of a bigram model, which is empty."""

    def select(self, rows: Tensor) -> Self:
        return self


class Bigram(Seq2Seq):
    """p(next | last) from a table; the rest of 1 is spread evenly over the other tokens."""

    def __init__(self, table: dict[int, dict[int, float]]) -> None:
        super().__init__()
        self.vocabulary_size = 7
        p = torch.zeros(7, 7, dtype=torch.float64)
        for last, row in table.items():
            p[last] = (1 - sum(row.values())) / (7 - len(row))
            for following, share in row.items():
                p[last, following] = share
        self.log_p = p.log()

    def forward(self, batch: Batch) -> Tensor:
        return self.log_p[batch.valid(batch.target_in[..., None])[:, 0]]

    def logits(self, features: Tensor) -> Tensor:
        return features

    def logits_parameters(self) -> list[nn.Parameter]:
        return []

    def start(self, source: Tensor, lengths: Tensor) -> NoMemory:
        return NoMemory()

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.log_p[token], state


def transformer() -> Seq2Seq:
    torch.manual_seed(3)
    return TransformerConfig(d_model=32, heads=4, layers=2).build(12, 12, shared=True).double()


def test_by_hand() -> None:
    """The reference is A B </s>, but after <s> the model prefers C, after which B is less likely."""
    model = Bigram(
        {BOS: {C: 0.6, A: 0.3}, A: {B: 0.8}, B: {EOS: 0.9}, C: {B: 0.25, A: 0.4}},
    )
    found = loss_by_position(model, [collate([[4]], [[A, B]])])
    assert found.tokens == [1, 1, 1]
    # Fed the truth: A after <s>, B after A, </s> after B. Fed itself: A after <s>, B after C, </s> after A.
    assert found.forced == pytest.approx([-math.log(0.3), -math.log(0.8), -math.log(0.9)])
    assert found.free == pytest.approx([-math.log(0.3), -math.log(0.25), -math.log(0.2 / 6)])
    assert found.on_track == [1, 0, 0]
    assert found.gap == pytest.approx((math.log(0.8 / 0.25) + math.log(0.9 / (0.2 / 6))) / 3)


def test_once_off_the_track_a_sentence_stays_off() -> None:
    """C B is fed instead of A B: at the last position the tokens agree again, the prefixes do not."""
    model = Bigram({BOS: {C: 0.6}, C: {B: 0.6}, A: {B: 0.6}, B: {EOS: 0.6}})
    found = loss_by_position(model, [collate([[4]], [[A, B]])])
    assert found.on_track == [1, 0, 0]
    assert found.free[2] == pytest.approx(found.forced[2])


def test_the_end_is_never_fed() -> None:
    """After <s> the model prefers </s>; the reference continues, so the second choice is fed."""
    model = Bigram({BOS: {EOS: 0.6, A: 0.3}, A: {EOS: 0.5}, EOS: {EOS: 0.01}})
    found = loss_by_position(model, [collate([[4]], [[A]])])
    assert found.free == pytest.approx([-math.log(0.3), -math.log(0.5)])
    assert found.on_track == [1, 1]


def test_a_model_that_is_always_right_has_equal_curves() -> None:
    model = Bigram({BOS: {A: 0.7}, A: {B: 0.5}, B: {C: 0.9}, C: {EOS: 0.8}})
    found = loss_by_position(model, [collate([[4], [5]], [[A, B, C], [A, B, C]])])
    assert found.free == found.forced
    assert found.on_track == found.tokens == [2, 2, 2, 2]
    assert found.gap == 0


def test_position_0_is_equal_and_later_ones_are_not() -> None:
    found = loss_by_position(transformer(), [collate(SOURCES, TARGETS)])
    assert found.free[0] == found.forced[0]
    assert found.free[1] != found.forced[1]


def test_fed_the_truth_step_by_step_equals_forward() -> None:
    model = transformer().eval()
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        log_p = model.logits(model(batch)).log_softmax(-1)
    expected = [0.0] * 7
    nll = iter((-log_p.gather(1, batch.targets[:, None])).tolist())
    for target in TARGETS:
        for position in range(len(target) + 1):
            expected[position] += next(nll)[0]
    found = loss_by_position(model, [batch])
    assert found.forced_nll == pytest.approx(expected, rel=1e-10)
    assert found.tokens == [4, 4, 3, 2, 1, 1, 1]


def test_it_is_the_loss_that_validation_reports() -> None:
    model = transformer().eval()
    batch = collate(SOURCES, TARGETS)
    with torch.no_grad():
        total = sum(piece.sum().item() for piece in token_nll(model, model(batch), batch.targets))
    assert sum(loss_by_position(model, [batch]).forced_nll) == pytest.approx(total, rel=1e-5)


def test_batches_and_padding_change_nothing() -> None:
    together = loss_by_position(transformer(), [collate(SOURCES, TARGETS)])
    alone = [collate([source], [target]) for source, target in zip(SOURCES, TARGETS, strict=True)]
    apart = loss_by_position(transformer(), alone)
    assert apart.forced == pytest.approx(together.forced, rel=1e-10)
    assert apart.free == pytest.approx(together.free, rel=1e-10)
    assert (apart.tokens, apart.on_track) == (together.tokens, together.on_track)


def test_training_goes_on_as_it_was() -> None:
    """Dropout is off during the measurement and on again afterwards."""
    model = transformer().train()
    batch = collate(SOURCES, TARGETS)
    assert loss_by_position(model, [batch]) == loss_by_position(model, [batch])
    assert model.training
    model.eval()
    loss_by_position(model, [batch])
    assert not model.training


def test_nothing_to_measure() -> None:
    assert loss_by_position(transformer(), []) == LossByPosition([], [], [], [])
