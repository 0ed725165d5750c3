"""The state of a training: its position, its counts, its clocks, and sums for the next log line."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from tolka.training.step import UpdateResult

FIRST_UPDATES = 5
"""Updates that say nothing of the pace of later ones: they allocate memory, compile and choose kernels."""


@dataclass
class TrainState:
    """The position and the counts of a training, saved in `last/`."""

    update: int = 0
    # Of the next batch to read; for a stream, `epoch` is the buffer.
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_nll: float | None = None  # of the best model
    best_update: int = 0
    best_mean_of: list[int] = field(default_factory=list)  # updates whose mean is the best model, if it is a mean
    stale: int = 0  # validations since the best one
    plateau: int = 0  # update of the validation after which the rate falls until training ends; 0 before
    validated_at: int = 0
    validation_seconds: float = 0.0  # of the latest validation, or as they were estimated
    validations_seconds: float = 0.0  # of all of them
    paced_from: float = 0.0  # `seconds` after the first updates; 0 before
    warmup: int = 0  # that was settled when the pace was known; 0 = that of the schedule
    kept: dict[str, float | None] = field(default_factory=dict)  # update -> trainer.metric, of the kept checkpoints
    kept_nll: dict[str, float] = field(default_factory=dict)  # update -> validation loss, as far as it is known
    validated_start: bool = False  # of a fine-tuning: whether the model that it starts from was validated
    averaged_at: int = 0
    precision: str = ""
    # Updates whose loss or gradient was NaN or inf: in all, and since the last one that was applied.
    skipped: int = 0
    skipped_in_row: int = 0
    splits: int = 0  # batches that did not fit into memory
    returns: int = 0  # to the last good state, each time with half the rate

    @property
    def pace(self) -> float:
        """Seconds of an update so far, validations included, without the first updates once there are others."""
        return (self.seconds - self.paced_from) / (self.update - (FIRST_UPDATES if self.paced_from else 0))

    def updates_in(self, seconds: float) -> int:
        """Return the updates that fit into these seconds of training, at the pace so far."""
        return self.update + int((seconds - self.seconds) / self.pace)


class GivenUpError(Exception):
    """A stop was requested during a validation."""


class Clock:
    """The wall time of training, including the time before a resume."""

    def __init__(self) -> None:
        self.start(0.0)

    def start(self, seconds: float) -> None:
        """Start now, with this many seconds of training so far."""
        self._started_at = time.perf_counter() - seconds

    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
        return time.perf_counter() - self._started_at


class Window:
    """Sums over the updates since the last line in metrics.jsonl; they stay on their device until they are read."""

    def __init__(self, sums: Sequence[float] | None = None, device: torch.device | None = None) -> None:
        """sums: what `sums` of an earlier window returned, to continue from on `device`."""
        self.started_at = time.perf_counter()
        self.tokens = self.updates = self.starved = 0
        self._sums = torch.tensor(sums, dtype=torch.float32, device=device) if sums else None

    def sums(self) -> list[float] | None:
        """Return nll and tokens of the applied updates, or None; waits for the device."""
        return self._sums.tolist() if self._sums is not None else None

    def add(self, result: UpdateResult) -> None:
        """Add the nll and the tokens of an update, if it was applied."""
        # A number from the host would wait for the device.
        sums = torch.stack([result.nll, torch.full_like(result.nll, result.tokens)])
        # Chosen on the device: `if result.applied` would wait for it, and NaN * 0 is NaN.
        sums = torch.where(result.applied, sums, torch.zeros_like(sums))
        self._sums = sums if self._sums is None else self._sums + sums
        self.tokens += result.tokens
        self.updates += 1
        self.starved += result.starved

    @property
    def loss(self) -> float | None:
        """nll per token, or None without an applied update; waits for the device."""
        nll, tokens = self.sums() or (0.0, 0.0)
        return nll / tokens if tokens else None
