"""What training takes is estimated; a batch that is too large goes in halves, and the weights move as if it had not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_bench import CPU, ROWS, STORE, Bench, assert_same

from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.mixture import Mixture
from tolka.losses.objective import Objective
from tolka.models.transformer import TransformerConfig
from tolka.system.device import Precision
from tolka.training import memory
from tolka.training.memory import Fit, MemoryNeed, check_memory, fewest_batches, memory_need, saved_bytes
from tolka.training.optimizers.sgd import SGDConfig


def forgetful(monkeypatch: pytest.MonkeyPatch, most: int, error: Exception, after_backward: bool = False) -> list[int]:
    """From now on no batch of more positions fits; gives the sizes that were tried."""
    tried: list[int] = []
    real = Objective.forward

    def forward(self: Objective, batch: Any) -> Any:
        tried.append(batch.positions)
        sums = real(self, batch)
        if batch.positions > most:
            if not after_backward:
                raise error

            def fail(gradient: torch.Tensor) -> torch.Tensor:
                handle.remove()
                raise error

            handle = next(self.model.encoder.parameters()).register_hook(fail)  # type: ignore[union-attr]
        return sums

    monkeypatch.setattr(Objective, "forward", forward)
    return tried


def no_decoding() -> None:
    pytest.fail("on a CPU nothing of that size is computed to find out")


@pytest.mark.parametrize("rows", [2, 3, 9])
def test_halves_of_a_batch(rows: int) -> None:
    batch = collate(ROWS[:rows], ROWS[10 : 10 + rows])
    first, second = batch.halves()
    half = rows // 2
    for part, expected in (
        (first, collate(ROWS[:half], ROWS[10 : 10 + half])),
        (second, collate(ROWS[half:rows], ROWS[10 + half : 10 + rows])),
    ):
        for name, value in vars(expected).items():
            assert torch.equal(torch.as_tensor(getattr(part, name)), torch.as_tensor(value)), name
    with pytest.raises(ValueError, match="no halves"):
        collate(ROWS[:1], ROWS[:1]).halves()


@pytest.mark.parametrize("after_backward", [False, True])
@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory: 3 bytes")],
    ids=str,
)
def test_a_batch_without_room_is_halved_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, after_backward: bool
) -> None:
    options: dict[str, Any] = {"updates": 12, "accumulate": 2, "dropout": 0.0, "optimizer": SGDConfig()}
    straight = Bench(tmp_path / "a", **options)
    straight.trainer.fit()
    tried = forgetful(monkeypatch, 40, error, after_backward)
    small = Bench(tmp_path / "b", **options)
    state = small.trainer.fit()
    assert state.splits == len([size for size in tried if size > 40]) >= 1  # what did not fit once is not tried again
    assert_same(dict(straight.model.state_dict()), dict(small.model.state_dict()))
    assert "out of memory at update" in (tmp_path / "b" / "train.log").read_text("utf-8")


def test_other_errors_and_single_pairs_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(monkeypatch, 0, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(torch.OutOfMemoryError):
        Bench(tmp_path / "a", updates=2).trainer.fit()
    monkeypatch.undo()
    forgetful(monkeypatch, 0, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        Bench(tmp_path / "b", updates=2).trainer.fit()


def test_what_a_forward_pass_keeps_grows_with_its_sentences() -> None:
    bench = TransformerConfig(d_model=64, heads=2, layers=2, dropout=0.1).build(50, 50, True)
    objective = Objective(bench, 0.1).train()
    row = [4 + n for n in range(30)]
    one, eight = (saved_bytes(objective, collate([row] * n, [row] * n), Precision(CPU, "fp32")) for n in (1, 8))
    assert 7.0 < eight / one <= 8.05
    assert one > 30 * 64 * 4 * 10  # ten states of each piece at least


def test_a_part_of_the_batch_tells_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate of what is kept, from an eighth of the batch, is within a fifth of what is."""
    step = Bench(tmp_path).trainer.step
    row = [4 + n % 7 for n in range(12)]
    batch = collate([row] * 64, [row] * 64)
    monkeypatch.setattr(memory, "_PASSING", 1.0)
    monkeypatch.setattr(memory, "_LIBRARIES", 0)
    monkeypatch.setattr(memory, "resident_memory_bytes", lambda: 0)
    weights = sum(weight.numel() * 4 for weight in step.objective.model.parameters())
    kept = memory_need(step, batch).needed - 9 * weights
    assert kept == pytest.approx(saved_bytes(step.objective, batch, step.precision), rel=0.2)


def test_what_is_needed_and_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Bench(tmp_path).trainer.step
    small, large = collate(ROWS[:4], ROWS[:4]), collate(ROWS * 8, ROWS * 8)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    needs = [memory_need(step, batch) for batch in (small, large)]
    assert torch.equal(before, torch.get_rng_state())
    assert all(weight.grad is None for weight in step.objective.parameters())
    assert needs[0].needed < needs[1].needed
    assert needs[0].fits
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 10_000)
    lines = list(check_memory(step, large, decode=no_decoding))
    said = r"memory: training will take about [\d.]+ GB, of [\d.]+ GB that are free \(estimated\)"
    assert re.fullmatch(said, lines[0])
    assert lines[1].startswith("warning: training may run out of memory: lower batching.tokens")
    monkeypatch.setattr(memory, "available_memory_bytes", lambda: 0)
    assert len(list(check_memory(step, large, decode=no_decoding))) == 1


def test_a_rehearsal_leaves_nothing_but_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, updates=2)
    batch = collate(ROWS[:20], ROWS[:20])
    before = torch.get_rng_state()
    assert bench.trainer.step.rehearse(batch) == 0
    tried = forgetful(monkeypatch, 40, torch.OutOfMemoryError("CUDA out of memory"))
    splits = bench.trainer.step.rehearse(batch)
    assert splits >= 1
    assert torch.equal(before, torch.get_rng_state())
    assert all(weight.grad is None for weight in bench.model.parameters())
    tried.clear()
    bench.trainer.fit()
    assert max(tried) <= 40  # training knows
    _, facts = bench.trainer.step.state()
    again = Bench(tmp_path / "again")
    assert bench.last is not None
    again.trainer.step.load_state(replace(bench.last, facts=facts), lambda: None)
    assert again.trainer.step.rehearse(batch) == 0  # as does a run that goes on


def test_the_largest_batch_is_found(tmp_path: Path) -> None:
    loader = Bench(tmp_path).trainer.loader
    sizes = [loader.batch(0, number).positions for number in range(len(loader.plan(0)))]
    assert loader.largest().positions == max(sizes) > min(sizes)


@pytest.mark.parametrize(
    ("room", "batches", "tokens"),
    [(10**9, 1, 96), (150, 2, 48), (70, 3, 32), (60, 4, 24), (0, 5, 20)],
)
def test_an_update_goes_in_as_few_batches_as_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, batches: int, tokens: int
) -> None:
    trainer = Bench(tmp_path).trainer
    tried: list[int] = []

    def need(step: Any, batch: Any) -> MemoryNeed:
        tried.append(batch.positions)
        return MemoryNeed(batch.positions, max(1, room))

    monkeypatch.setattr(memory, "memory_need", need)
    assert fewest_batches(trainer.step, trainer.loader, 96, least=17) == Fit(batches, tokens)
    assert trainer.loader.tokens == tokens
    assert all(size > room for size in tried[:-1])
    made = [trainer.loader.batch(0, number) for number in range(len(trainer.loader.plan(0)))]
    assert max(max(batch.source.numel(), batch.target_in.numel()) for batch in made) <= tokens


def test_resized_batches_are_those_of_a_loader_of_that_size(tmp_path: Path) -> None:
    small, large = (
        Loader(STORE, BatchingConfig(tokens=tokens, max_length=16), seed=3, mixture=Mixture.of([30, 10], [3, 2]))
        for tokens in (32, 64)
    )
    assert len(small.plan(1)) > len(large.plan(1))
    small.resize(64)
    for epoch in (1, 2):
        assert [rows.tolist() for rows in small.plan(epoch)] == [rows.tolist() for rows in large.plan(epoch)]


@pytest.mark.parametrize("room", [10**9, 120, 90, 50])
def test_what_was_tried_piece_by_piece_fits_a_step_that_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """As on a GPU: a try is in one piece, and one that failed does not make the next one easier."""
    bench = Bench(tmp_path / "a", updates=4)
    forgetful(monkeypatch, room, torch.OutOfMemoryError("CUDA out of memory"))
    monkeypatch.setattr(memory, "_fits_in_memory", lambda step, batch: step.fits_in_memory(batch))
    before = torch.get_rng_state()
    fit = fewest_batches(bench.trainer.step, bench.trainer.loader, 96, least=17)
    assert torch.equal(before, torch.get_rng_state())
    assert all(weight.grad is None for weight in bench.model.parameters())
    fresh = Bench(tmp_path / "b", updates=4, accumulate=fit.batches)
    fresh.trainer.loader.resize(fit.tokens)
    assert fresh.trainer.fit().splits == 0
    if fit.batches > 1:
        larger = Bench(tmp_path / "c", updates=4)
        larger.trainer.loader.resize(Fit.of(96, {2: 1, 3: 2, 4: 3, 6: 4}[fit.batches]).tokens)
        assert not larger.trainer.step.fits_in_memory(larger.trainer.loader.largest())


def test_other_errors_of_a_try_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(monkeypatch, 0, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        Bench(tmp_path).trainer.step.fits_in_memory(collate(ROWS[:2], ROWS[:2]))


def test_of_a_very_large_batch_no_more_is_computed_than_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Bench(tmp_path).trainer.step
    real, tried = memory.saved_bytes, list[int]()

    def watched(objective: Any, batch: Any, precision: Any) -> int:
        tried.append(batch.positions)
        return real(objective, batch, precision)

    monkeypatch.setattr(memory, "saved_bytes", watched)
    row = [4 + n % 7 for n in range(15)]
    sizes = {}
    for rows in (2048, 4096):
        batch = collate([row] * rows, [row] * rows)
        sizes[rows] = memory_need(step, batch).needed
    assert max(tried) <= 2 * 2048
    assert sizes[4096] > sizes[2048] + 10**6
