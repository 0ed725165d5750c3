"""The chunked loss against torch's losses, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.data.batch import Batch, collate
from tolka.losses import cross_entropy
from tolka.losses.cross_entropy import Objective, token_nll
from tolka.models.base import DecoderState, Seq2Seq


class Lookup(Seq2Seq):
    """The smallest model with a loss: its features are an embedding of the previous target token."""

    vocabulary_size, feature_size = 7, 5

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(7, 5)
        self.output = nn.Linear(5, 7)
        self.double()

    def forward(self, batch: Batch) -> Tensor:
        return batch.valid(self.embedding(batch.target_in))

    def logits(self, features: Tensor) -> Tensor:
        logits: Tensor = self.output(features)
        return logits

    def logits_parameters(self) -> list[nn.Parameter]:
        return list(self.output.parameters())

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        raise NotImplementedError

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        raise NotImplementedError


BATCH = collate([[4], [5, 6]], [[4, 5, 6], [6]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk_values", [7, 14, 10**6])
def test_loss_and_gradients_equal_torch(smoothing: float, chunk_values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "_CHUNK_VALUES", chunk_values)
    model, reference = Lookup(), Lookup()
    sums = Objective(model, smoothing)(BATCH)
    (sums.loss * 0.3).backward()
    logits = reference.logits(reference(BATCH))
    expected = F.cross_entropy(logits, BATCH.targets, label_smoothing=smoothing, reduction="sum")
    (expected * 0.3).backward()
    assert sums.tokens == 6
    assert sums.loss.item() == pytest.approx(expected.item(), rel=1e-12)
    assert sums.nll.item() == pytest.approx(F.cross_entropy(logits, BATCH.targets, reduction="sum").item(), rel=1e-12)
    for one, other in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("chunk_values", [7, 14, 10**6])
def test_a_teachers_probabilities_are_learnt_beside_the_references(
    chunk_values: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "_CHUNK_VALUES", chunk_values)
    monkeypatch.setattr(cross_entropy, "row_counts_are_compiled", lambda: compiled)
    model, reference = Lookup(), Lookup()
    teacher = Lookup().requires_grad_(False)
    for weight in teacher.parameters():
        weight.mul_(-1.5)
    objective = Objective(model, 0.1, teacher)
    sums = objective(BATCH)
    (sums.loss * 0.3).backward()
    # Torch's loss takes probabilities as targets: a fifth of the smoothed reference, four fifths of the teacher's.
    logits = reference.logits(reference(BATCH))
    smoothed = 0.9 * F.one_hot(BATCH.targets, 7).double() + 0.1 / 7
    taught = teacher.logits(teacher(BATCH)).softmax(dim=-1)
    expected = F.cross_entropy(logits, 0.2 * smoothed + 0.8 * taught, reduction="sum")
    (expected * 0.3).backward()
    assert sums.loss.item() == pytest.approx(expected.item(), rel=1e-12)
    assert sums.nll.item() == pytest.approx(F.cross_entropy(logits, BATCH.targets, reduction="sum").item(), rel=1e-12)
    for one, other in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-12)
    # It is no part of what is trained and saved, nor of a validation.
    assert {*objective.parameters()} == {*model.parameters()}
    assert objective.eval()(BATCH).loss.item() == pytest.approx(sums.nll.item())


def test_evaluation_leaves_label_smoothing_out() -> None:
    objective = Objective(Lookup(), label_smoothing=0.3).eval()
    with torch.no_grad():
        without_gradient = objective(BATCH)
    with_gradient = objective(BATCH)
    assert with_gradient.loss.item() == pytest.approx(with_gradient.nll.item())
    assert without_gradient.nll.item() == pytest.approx(with_gradient.nll.item())


def test_uniform_predictions_cost_ln_v_a_token() -> None:
    model = Lookup()
    for parameter in model.output.parameters():
        nn.init.zeros_(parameter)
    sums = Objective(model, label_smoothing=0.1)(BATCH)
    assert sums.loss.item() == pytest.approx(6 * math.log(7), rel=1e-6)
    assert sums.nll.item() == pytest.approx(6 * math.log(7), rel=1e-6)


def test_token_nll_is_in_order() -> None:
    model = Lookup()
    with torch.no_grad():
        features = model(BATCH)
        nll = torch.cat(list(token_nll(model, features, BATCH.targets)))
    expected = F.cross_entropy(model.logits(features), BATCH.targets, reduction="none")
    torch.testing.assert_close(nll, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk_values", [14, 70, 10**6])
def test_chunks_of_few_sizes_come_to_the_same(chunk_values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each number of rows is compiled, the last chunk is padded to the size of the others."""
    monkeypatch.setattr(cross_entropy, "_CHUNK_VALUES", chunk_values)
    batch = collate([[4]] * 5, [[4, 5, 6], [6], [5, 4], [4, 4, 4], [6, 5, 4, 6]])
    found, rows = [], []
    for compiled in (False, True):
        monkeypatch.setattr(cross_entropy, "row_counts_are_compiled", lambda compiled=compiled: compiled)
        model = Lookup()
        sizes: list[int] = []
        model.output.register_forward_hook(lambda _layer, _inputs, result, into=sizes: into.append(len(result)))
        sums = Objective(model, 0.1)(batch)
        rows.append(sizes)
        sums.loss.backward()
        found.append([sums.loss, sums.nll, *(weight.grad for weight in model.parameters())])
    for plain, filled in zip(*found, strict=True):
        torch.testing.assert_close(plain, filled)
    assert sum(rows[0]) == batch.tokens
    assert len(set(rows[1])) == 1
    assert rows[1][0] % 8 == 0


def test_frozen_output_weights_take_no_gradient() -> None:
    model, reference = Lookup(), Lookup()
    for weight in model.output.parameters():
        weight.requires_grad_(False)
    Objective(model, 0.1)(BATCH).loss.backward()
    Objective(reference, 0.1)(BATCH).loss.backward()
    assert [weight.grad for weight in model.output.parameters()] == [None, None]
    torch.testing.assert_close(model.embedding.weight.grad, reference.embedding.weight.grad)
