"""A batch that is too large for the memory goes in halves, and the weights move as if it had not."""

from pathlib import Path
from typing import Any

import pytest
import torch
from trainer_bench import ROWS, Bench, assert_same

from tolka.batch import collate
from tolka.losses import Objective
from tolka.training.optim import SGDConfig


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
        assert part.tokens == expected.tokens
        for name in ("source", "source_lengths", "target_in", "target_out", "target_lengths", "target_positions"):
            assert torch.equal(getattr(part, name), getattr(expected, name)), name
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
