"""Updates skipped because the loss or a gradient was NaN or inf: reported, and counted until there are too many."""

import torch
from torch import Tensor

from tolka.errors import TolkaError
from tolka.training.run_folder import RunFolder
from tolka.training.state import TrainState

# The first ones are all logged, after that every hundredth.
_LOGGED_SINGLY = 20
# A single batch may overflow; after so many in a row the weights themselves are at fault.
_MOST_IN_ROW = 10
# Of fp16's loss, as in fairseq: a gradient that overflows at it is inf or NaN at any scale.
_LEAST_SCALE = 1e-4


class LostError(Exception):
    """Training cannot recover from here; the message says why."""


class SkippedUpdates:
    """Counts and reports skipped updates; outcomes stay on the device until `check`, which waits for it."""

    def __init__(self, run: RunFolder, scaler: torch.amp.GradScaler) -> None:
        """scaler: fp16's, which finds its scale by updates that overflow; disabled in other precisions."""
        self._run, self._scaler = run, scaler
        self._latest: list[tuple[int, Tensor]] = []  # as `add` gets them

    def add(self, number: int, applied: Tensor) -> None:
        """Note an update, applied or not."""
        self._latest.append((number, applied))

    def forget(self) -> None:
        """Drop the updates that have not been checked yet."""
        self._latest.clear()

    def check(self, state: TrainState) -> None:
        """Count and report the latest updates that were skipped.

        LostError after too many in a row; in fp16 TolkaError, when a smaller scale of the loss cannot help any more.
        """
        latest, self._latest = self._latest, []
        if not latest:
            return
        # One copy from the device for all of them.
        applied = torch.stack([each for _, each in latest]).tolist()
        for (number, _), was_applied in zip(latest, applied, strict=True):
            if was_applied:
                state.skipped_in_row = 0
                continue
            state.skipped += 1
            state.skipped_in_row += 1
            self._report(number, state.skipped)
            if self._scaler.is_enabled():
                if (scale := self._scaler.get_scale()) < _LEAST_SCALE:
                    raise TolkaError(
                        f"the gradient was NaN or inf in {state.skipped_in_row} updates in a row, up to update "
                        f"{state.update}, also with fp16's loss scaled to {scale:.1g}: begin another run with "
                        "trainer.precision=bf16 or fp32, or a lower optimizer.lr; "
                        f"{self._run.last} is from before, if it exists"
                    )
            elif state.skipped_in_row > _MOST_IN_ROW:
                raise LostError(f"loss or gradient was NaN or inf in {state.skipped_in_row} updates in a row")

    def spoils(self, state: TrainState) -> bool:
        """Return whether the weights may be at fault for the latest updates, so that they are not to be saved."""
        return state.skipped_in_row > (_MOST_IN_ROW if self._scaler.is_enabled() else 0)

    def _report(self, update: int, so_far: int) -> None:
        self._run.record({"update": update, "skipped": so_far})
        if so_far > _LOGGED_SINGLY and so_far % 100:
            return
        why = "loss or gradient is NaN or inf"
        if self._scaler.is_enabled():  # usual in the first updates, and every few thousand
            why = f"gradient is too large for fp16; the scale of the loss is now {self._scaler.get_scale():.4g}"
        self._run.log(f"update {update} was skipped ({so_far} so far), because its {why}")
