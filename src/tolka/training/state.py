"""The state of a training: its position, its counts, its clocks, and sums for the next log line."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from tolka.training.step import UpdateResult


@dataclass
class TrainState:
    """The position and the counts of a training. epoch (or buffer, of a stream) and batch: of the next batch to read.

    stale: validations without a better one. skipped: updates whose loss or gradient was NaN or inf. returns: how often
    training returned to its last good state, each time with half the rate. splits: batches that did not fit into
    memory.

    safety_seconds: those of `seconds` that training waited for saving and for checking updates.
    """

    update: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_nll: float | None = None  # of the best model; None if a version wrote the state that did not note it
    best_update: int = 0
    best_mean_of: list[int] = field(default_factory=list)  # the updates whose mean the best model is, if it is one
    stale: int = 0
    validated_at: int = 0
    kept: dict[str, float | None] = field(default_factory=dict)  # update -> trainer.metric of the checkpoints that stay
    kept_nll: dict[str, float] = field(default_factory=dict)  # update -> validation loss, as far as it is known
    averaged_at: int = 0
    precision: str = ""
    skipped: int = 0
    skipped_in_row: int = 0
    splits: int = 0
    safety_seconds: float = 0.0
    returns: int = 0


class GivenUpError(Exception):
    """A stop was requested during a validation."""


class StopRequest:
    """Whether, and why, training should stop; safe to set from a signal handler."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def check(self) -> None:
        """Raise GivenUpError if a stop was requested."""
        if self.reason:
            raise GivenUpError


class Clock:
    """A clock of the seconds of training, including those before a resume."""

    def __init__(self) -> None:
        self.start(0.0)

    def start(self, already: float) -> None:
        """Start now, with `already` seconds of training."""
        self._started_at = time.perf_counter() - already

    @property
    def seconds(self) -> float:
        """Seconds of training so far."""
        return time.perf_counter() - self._started_at


class Stopwatch:
    """A stopwatch that runs inside its `with` blocks; nested blocks count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._started_at = 0, 0.0

    def __enter__(self) -> None:
        if not self._depth:
            self._started_at = time.perf_counter()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._started_at


class Window:
    """Sums over the updates since the last line in metrics.jsonl; they stay on their device until they are read."""

    def __init__(self, sums: Sequence[float] | None = None, device: torch.device | None = None) -> None:
        """sums: what `sums` of an earlier window returned, to continue from on `device`."""
        self.started_at = time.perf_counter()
        self.tokens = 0
        self._sums = torch.tensor(sums, dtype=torch.float32, device=device) if sums else None

    def sums(self) -> list[float] | None:
        """Return nll and tokens of the applied updates, or None; waits for the device."""
        return self._sums.tolist() if self._sums is not None else None

    def add(self, result: UpdateResult) -> None:
        """Add one update."""
        both = torch.stack([result.nll, result.nll.new_tensor(result.tokens)])
        both = torch.where(result.applied, both, torch.zeros_like(both))
        self._sums = both if self._sums is None else self._sums + both
        self.tokens += result.tokens

    @property
    def loss(self) -> float | None:
        """nll per token, or None without an applied update; waits for the device."""
        nll, tokens = self.sums() or (0.0, 0.0)
        return nll / tokens if tokens else None
