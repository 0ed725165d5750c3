"""A batch that is too large goes in halves, and the weights move as if it had not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_bench import ROWS, STORE, Bench, assert_same

from tolka.data.batch import collate
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Loader
from tolka.data.mixture import Mixture
from tolka.losses.cross_entropy import Objective
from tolka.optim.optimizers.of_torch import SGDConfig
from tolka.training import memory
from tolka.training.memory import fewest_batches


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

    def fits(batch: Any) -> bool:
        tried.append(batch.positions)
        return bool(batch.positions <= room)

    monkeypatch.setattr(memory, "_can_try", lambda step: True)
    monkeypatch.setattr(trainer.step, "fits_in_memory", fits)
    assert fewest_batches(trainer.step, trainer.loader, 96, least=17) == batches
    assert trainer.loader.tokens == tokens
    assert all(size > room for size in tried[:-1])
    made = [trainer.loader.batch(0, number) for number in range(len(trainer.loader.plan(0)))]
    assert max(max(batch.source.numel(), batch.target_in.numel()) for batch in made) <= tokens


def test_on_a_cpu_the_batches_stay_as_they_are(tmp_path: Path) -> None:
    trainer = Bench(tmp_path, accumulate=2).trainer
    assert fewest_batches(trainer.step, trainer.loader, 96, least=17) == 2


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
    monkeypatch.setattr(memory, "_can_try", lambda step: True)
    before = torch.get_rng_state()
    batches = fewest_batches(bench.trainer.step, bench.trainer.loader, 96, least=17)
    assert torch.equal(before, torch.get_rng_state())
    assert all(weight.grad is None for weight in bench.model.parameters())
    fresh = Bench(tmp_path / "b", updates=4, accumulate=batches)
    fresh.trainer.loader.resize(bench.trainer.loader.tokens)
    assert fresh.trainer.fit().splits == 0
    if batches > 1:
        larger = Bench(tmp_path / "c", updates=4)
        larger.trainer.loader.resize(-(-96 // {2: 1, 3: 2, 4: 3, 6: 4}[batches]))
        assert not larger.trainer.step.fits_in_memory(larger.trainer.loader.largest())


def test_other_errors_of_a_try_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful(monkeypatch, 0, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        Bench(tmp_path).trainer.step.fits_in_memory(collate(ROWS[:2], ROWS[:2]))
