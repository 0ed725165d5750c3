"""The chunked loss against torch's losses, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.data.batch import Batch, collate
from tolka.losses import chunks
from tolka.losses import consistency as consistency_module
from tolka.losses import objective as objective_module
from tolka.losses.consistency import consistency_gradients, r_drop, simcut
from tolka.losses.cross_entropy import LossSum, token_nll
from tolka.losses.objective import Objective
from tolka.models.base import DecoderState, Seq2Seq


class Lookup(Seq2Seq):
    """The smallest model with a loss: its features are an embedding of the previous target token."""

    vocabulary_size = 7

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
    monkeypatch.setattr(chunks, "_CHUNK_VALUES", chunk_values)
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


def two_passes() -> tuple[Tensor, Tensor]:
    """Logits (6, 7) of two passes, in float64, as leaves."""
    generator = torch.Generator().manual_seed(4)
    first, second = (torch.randn(6, 7, generator=generator, dtype=torch.float64) * 3 for _ in range(2))
    return first.requires_grad_(), second.requires_grad_()


@pytest.mark.parametrize("values", [1, 28, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_by_the_papers_formula(smoothing: float, values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of: -log P1 - log P2 + weight / 2 * (KL(P1 || P2) + KL(P2 || P1)), gradients by autograd."""
    monkeypatch.setattr(consistency_module, "_VALUES_PER_BLOCK_ON_CPU", values)
    first, second = two_passes()
    gradients = first.detach().clone(), second.detach().clone()
    loss, nll = consistency_gradients(*gradients, BATCH.targets, smoothing, r_drop(5.0))
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    kl_pq = (log_p.exp() * (log_p - log_q)).sum()
    kl_qp = (log_q.exp() * (log_q - log_p)).sum()
    crosses = [
        F.cross_entropy(each, BATCH.targets, label_smoothing=smoothing, reduction="sum") for each in (first, second)
    ]
    expected = (crosses[0] + crosses[1] + 5.0 / 2 * (kl_pq + kl_qp)) / 2
    expected.backward()
    assert loss.item() == pytest.approx(expected.item())
    plain = [F.cross_entropy(each, BATCH.targets, reduction="sum").item() for each in (first, second)]
    assert nll.item() == pytest.approx(sum(plain) / 2)
    for found, leaf in zip(gradients, (first, second), strict=True):
        torch.testing.assert_close(found, leaf.grad)


def test_simcut_by_the_papers_formula() -> None:
    """CE(whole) + weight * KL(whole || cut), the gradient going through both sides of the divergence."""
    first, second = two_passes()
    gradients = first.detach().clone(), second.detach().clone()
    loss, nll = consistency_gradients(*gradients, BATCH.targets, 0.1, simcut(3.0, 0.05))
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    cross = F.cross_entropy(first, BATCH.targets, label_smoothing=0.1, reduction="sum")
    expected = cross + 3.0 * F.kl_div(log_q, log_p, log_target=True, reduction="sum")
    expected.backward()
    assert loss.item() == pytest.approx(expected.item())
    assert nll.item() == pytest.approx(F.cross_entropy(first, BATCH.targets, reduction="sum").item())
    for found, leaf in zip(gradients, (first, second), strict=True):
        torch.testing.assert_close(found, leaf.grad)


@pytest.mark.parametrize("consistency", [None, simcut(3.0, 0.0)], ids=["one pass", "two"])
@pytest.mark.parametrize("chunk_values", [14, 70, 10**6])
def test_chunks_of_few_sizes_come_to_the_same(
    chunk_values: int, consistency: consistency_module.ConsistencyLoss | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each number of rows is compiled, the last chunk is padded to the size of the others."""
    monkeypatch.setattr(chunks, "_CHUNK_VALUES", chunk_values)
    batch = collate([[4]] * 5, [[4, 5, 6], [6], [5, 4], [4, 4, 4], [6, 5, 4, 6]])
    found, rows = [], []
    for compiled in (False, True):
        monkeypatch.setattr(objective_module, "row_counts_are_compiled", lambda compiled=compiled: compiled)
        model = Lookup()
        sizes: list[int] = []
        model.output.register_forward_hook(lambda _layer, _inputs, result, into=sizes: into.append(len(result)))
        sums = Objective(model, 0.1, consistency=consistency)(batch)
        rows.append(sizes)
        sums.loss.backward()
        found.append([sums.loss, sums.nll, *(weight.grad for weight in model.parameters())])
    for plain, filled in zip(*found, strict=True):
        torch.testing.assert_close(plain, filled)
    assert sum(rows[0]) == batch.tokens * (2 if consistency else 1)
    assert len(set(rows[1])) == 1
    assert rows[1][0] % 8 == 0


@pytest.mark.parametrize("chunk_values", [7, 28, 10**6])
def test_two_equal_passes_cost_what_one_costs(chunk_values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout R-Drop's passes are equal: the same loss, the same gradients, whatever the chunks."""
    monkeypatch.setattr(chunks, "_CHUNK_VALUES", chunk_values)
    alone, paired = Lookup(), Lookup()
    one, other = Objective(alone, 0.1)(BATCH), Objective(paired, 0.1, consistency=r_drop(5.0))(BATCH)
    one.loss.backward()
    other.loss.backward()
    assert other.loss.item() == pytest.approx(one.loss.item(), rel=1e-6)
    assert other.nll.item() == pytest.approx(one.nll.item(), rel=1e-6)
    assert other.tokens == one.tokens
    for expected, found in zip(alone.parameters(), paired.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-5, atol=1e-7)


def test_simcut_pulls_towards_the_pass_that_sees_all() -> None:
    """Lookup reads target_in: with words cut the two passes differ, the loss grows with the weight, nll does not."""

    def sums(weight: float) -> LossSum:
        torch.manual_seed(1)
        found: LossSum = Objective(Lookup(), 0.0, consistency=simcut(weight, 0.5))(BATCH)
        return found

    assert sums(4.0).loss.item() > sums(2.0).loss.item() > sums(2.0).nll.item()
    assert sums(4.0).nll.item() == pytest.approx(sums(2.0).nll.item())
    divergences = [sums(weight).loss.item() - sums(weight).nll.item() for weight in (2.0, 4.0)]
    assert divergences[1] == pytest.approx(2 * divergences[0], rel=1e-5)


def test_only_training_makes_a_second_pass_or_drops_words() -> None:
    seen: list[Batch] = []

    class Watched(Lookup):
        def forward(self, batch: Batch) -> Tensor:
            seen.append(batch)
            return super().forward(batch)

    objective = Objective(Watched(), 0.1, word_dropout=0.9, consistency=r_drop(1.0))
    objective(BATCH)
    assert len(seen) == 2
    assert not torch.equal(seen[0].source, BATCH.source)
    objective.eval()(BATCH)
    with torch.no_grad():
        objective(BATCH)
    assert len(seen) == 4
    assert all(batch is BATCH for batch in seen[2:])


def test_frozen_output_weights_take_no_gradient() -> None:
    model, reference = Lookup(), Lookup()
    for weight in model.output.parameters():
        weight.requires_grad_(False)
    Objective(model, 0.1)(BATCH).loss.backward()
    Objective(reference, 0.1)(BATCH).loss.backward()
    assert [weight.grad for weight in model.output.parameters()] == [None, None]
    torch.testing.assert_close(model.embedding.weight.grad, reference.embedding.weight.grad)
