"""The contract of learning-rate schedules: pure functions of the step, from 1, of the wall time, or of a plateau."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.options.checks import zero_or_more
from tolka.options.registry import Registry


@dataclass(frozen=True)
class SchedulerConfig(ABC):
    """Options of one schedule."""

    USES_LR: ClassVar[bool] = True
    """Whether optimizer.lr is the peak; otherwise the rate follows from the schedule alone."""

    warmup: int = 400
    """updates over which the rate rises to its peak"""

    def __post_init__(self) -> None:
        zero_or_more(self, "scheduler", "off", "warmup")

    @abstractmethod
    def rate(self, step: int, peak: float) -> float:
        """Return the learning rate of update `step` (from 1). peak: optimizer.lr."""

    @property
    def by_wall_time(self) -> bool:
        """Whether the schedule ends with trainer.max_minutes instead of at an update."""
        return False

    @property
    def decays_at_plateau(self) -> bool:
        """Whether a plateau begins a decay with which training ends."""
        return False

    def last_update(self, plateau: int) -> int | None:
        """Return the update at which a decay that began after update `plateau` ends; None where none has begun."""
        return None

    def paced(self, step: int, share: float, updates: int, plateau: int = 0) -> "SchedulerConfig":
        """Return the schedule to follow at update `step`, after `share` of the minutes; itself if it ignores time.

        updates: the most there can be, even if the minutes would allow more. plateau: of TrainState.
        """
        return self


@dataclass(frozen=True)
class EndingConfig(SchedulerConfig):
    """Linear warm-up to the peak, then decay to a floor, which ends at a known update or after trainer.max_minutes."""

    horizon: int = 20000
    """update at which the rate reaches its floor, wherever trainer.updates ends; 0 = with epochs or max_minutes"""
    floor: float = 0.01
    """share of the peak that is left at the horizon, and after it"""

    def __post_init__(self) -> None:
        super().__post_init__()
        zero_or_more(self, "scheduler", "by wall time", "horizon")
        if not self.by_wall_time and self.horizon <= self.warmup:
            raise ConfigError(
                f"scheduler.horizon ({self.horizon}) must be longer than scheduler.warmup ({self.warmup}); "
                f"type scheduler.warmup={self.horizon // 10} (a tenth is usual), a longer horizon, or "
                "scheduler.horizon=0 to have it end with trainer.max_minutes"
            )
        if not 0.0 <= self.floor <= 1.0:
            raise ConfigError(f"scheduler.floor ({self.floor}) must be from 0 to 1")

    def rate(self, step: int, peak: float) -> float:
        """Return peak * step / warmup, then peak * (1 - (1 - floor) * decayed(step))."""
        if step < self.warmup:
            return peak * step / self.warmup
        # Without a clock there is no end: `paced` sets the horizon from the time.
        if self.by_wall_time:
            return peak
        return peak * (1.0 - (1.0 - self.floor) * self.decayed(min(step, self.horizon)))

    @property
    def by_wall_time(self) -> bool:
        return self.horizon == 0

    def paced(self, step: int, share: float, updates: int, plateau: int = 0) -> "EndingConfig":
        """Return the schedule with its horizon at the last update that the pace so far allows."""
        if not self.by_wall_time:
            return self
        # After a quarter of the minutes, four times the updates so far are expected. The estimate changes from update
        # to update, and is exact at the end, where the rate has to be at its floor.
        expected = round(step / share) if share > 0 else updates
        return self.ending_at(max(self.warmup + 1, min(expected, updates)))

    def ending_at(self, horizon: int) -> "EndingConfig":
        """Return the schedule with another horizon."""
        return replace(self, horizon=horizon)

    @abstractmethod
    def decayed(self, step: int) -> float:
        """Return the share of the decay so far: 0 at the end of warm-up, 1 at the horizon; step is between them."""

    def progress(self, step: int) -> float:
        """Return the share of the updates between the end of warm-up and the horizon."""
        return (step - self.warmup) / (self.horizon - self.warmup)


@dataclass(frozen=True)
class LearningRate:
    """The learning rate of every update of a training: a schedule with its peak. updates: the most there can be."""

    schedule: SchedulerConfig
    peak: float
    updates: int

    def at(self, update: int, share: float, plateau: int = 0, warmup: int = 0) -> float:
        """Return the rate of an update (from 1). share: of trainer.max_minutes, that are over; 0 without a limit.

        plateau, warmup: of TrainState.
        """
        schedule = replace(self.schedule, warmup=warmup) if warmup else self.schedule
        return schedule.paced(update, share, self.updates, plateau).rate(update, self.peak)


SCHEDULERS: Registry[SchedulerConfig] = Registry("scheduler", "tolka.optim.schedules")
