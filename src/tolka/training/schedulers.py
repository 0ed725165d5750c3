"""Learning-rate schedules: pure functions of the step, which counts from 1, and of the time where they end with it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from tolka.checks import at_least, zero_or_more
from tolka.errors import ConfigError
from tolka.registry import Registry


@dataclass(frozen=True)
class SchedulerConfig(ABC):
    """Options of one schedule."""

    warmup: int = 400
    """updates over which the rate rises to its peak"""

    def __post_init__(self) -> None:
        zero_or_more(self, "scheduler", "off", "warmup")

    @abstractmethod
    def rate(self, step: int, peak: float) -> float:
        """The learning rate of update `step` (from 1); peak: optimizer.lr."""

    @property
    def has_own_peak(self) -> bool:
        """Whether the rate follows from the schedule alone, so that optimizer.lr has no effect."""
        return False

    @property
    def by_the_clock(self) -> bool:
        """Whether the schedule ends with the minutes of the training instead of at an update."""
        return False

    def paced(self, step: int, share: float, updates: int) -> "SchedulerConfig":
        """The schedule as it looks at update `step`, after `share` of the minutes; itself unless it is by the clock.

        updates: how many there are at most, however many the minutes would allow.
        """
        return self

    def setting_of(self, peak: float) -> str:
        """The setting that makes `peak` the highest rate, as one types it."""
        return f"optimizer.lr={peak:.2g}"


@dataclass(frozen=True)
class EndingConfig(SchedulerConfig):
    """Linear warm-up to the peak, then down to a floor at an update that is known beforehand, or by the clock."""

    horizon: int = 20000
    """update at which the rate reaches its floor, wherever trainer.updates ends; 0 = with the last of max_minutes"""
    floor: float = 0.01
    """share of the peak that is left at the horizon, and after it"""

    def __post_init__(self) -> None:
        super().__post_init__()
        zero_or_more(self, "scheduler", "by the clock", "horizon")
        if not self.by_the_clock and self.horizon <= self.warmup:
            raise ConfigError(
                f"scheduler.horizon ({self.horizon}) must be longer than scheduler.warmup ({self.warmup}); "
                f"type scheduler.warmup={self.horizon // 10} (a tenth is usual), a longer horizon, or "
                "scheduler.horizon=0 to have it end with trainer.max_minutes"
            )
        if not 0.0 <= self.floor <= 1.0:
            raise ConfigError(f"scheduler.floor ({self.floor}) must be from 0 to 1")

    def rate(self, step: int, peak: float) -> float:
        """peak * step / warmup, then peak * (1 - (1 - floor) * fallen(step))."""
        if step < self.warmup:
            return peak * step / self.warmup
        if self.by_the_clock:
            return peak  # `paced` knows the time
        return peak * (1.0 - (1.0 - self.floor) * self.fallen(min(step, self.horizon)))

    @property
    def by_the_clock(self) -> bool:
        """See SchedulerConfig.by_the_clock."""
        return self.horizon == 0

    def paced(self, step: int, share: float, updates: int) -> "EndingConfig":
        """See SchedulerConfig.paced: as many updates as there will be at the pace so far."""
        if not self.by_the_clock:
            return self
        expected = round(step / share) if share > 0 else updates
        return self.ending_at(max(self.warmup + 1, min(expected, updates)))

    def ending_at(self, horizon: int) -> "EndingConfig":
        """The same with another horizon."""
        return replace(self, horizon=horizon)

    @abstractmethod
    def fallen(self, step: int) -> float:
        """Share of the way from peak to floor, 0 at the warm-up's end, 1 at the horizon; warmup <= step <= horizon."""

    def way(self, step: int) -> float:
        """Share of the updates between the warm-up's end and the horizon."""
        return (step - self.warmup) / (self.horizon - self.warmup)


SCHEDULERS: Registry[SchedulerConfig] = Registry("scheduler", "tolka.training")


@SCHEDULERS.register("inverse_sqrt")
@dataclass(frozen=True)
class InverseSqrtConfig(SchedulerConfig):
    """Linear warm-up to the peak, then decay with the inverse square root of the step."""

    name: str = "inverse_sqrt"
    """the kind of schedule: inverse_sqrt"""

    def rate(self, step: int, peak: float) -> float:
        """peak * min(step / warmup, sqrt(warmup / step))."""
        warmup = max(self.warmup, 1)
        return float(peak * min(step / warmup, (warmup / step) ** 0.5))


@SCHEDULERS.register("constant")
@dataclass(frozen=True)
class ConstantConfig(SchedulerConfig):
    """Linear warm-up to the peak, which then stays."""

    name: str = "constant"
    """the kind of schedule: constant"""

    def rate(self, step: int, peak: float) -> float:
        """peak * min(step / warmup, 1)."""
        return peak * min(step / max(self.warmup, 1), 1.0)


@SCHEDULERS.register("linear")
@dataclass(frozen=True)
class LinearConfig(EndingConfig):
    """A straight line down: better than inverse_sqrt when the length is known beforehand."""

    name: str = "linear"
    """the kind of schedule: linear"""

    def fallen(self, step: int) -> float:
        """(step - warmup) / (horizon - warmup)."""
        return self.way(step)


@SCHEDULERS.register("cosine")
@dataclass(frozen=True)
class CosineConfig(EndingConfig):
    """Half a cosine down (Loshchilov and Hutter 2017, equation 5), without their restarts."""

    name: str = "cosine"
    """the kind of schedule: cosine"""

    def fallen(self, step: int) -> float:
        """(1 - cos(pi * (step - warmup) / (horizon - warmup))) / 2."""
        return (1.0 - math.cos(math.pi * self.way(step))) / 2.0


@SCHEDULERS.register("wsd")
@dataclass(frozen=True)
class WarmupStableDecayConfig(EndingConfig):
    """Warm-up, a stable stretch at the peak, and a short decay (Hu et al. 2024).

    The decay has the shape 1 - sqrt, which Hägele et al. (2024, section 3) found better than a straight line, and as
    good as a cosine once it takes a fifth of the updates.
    """

    name: str = "wsd"
    """the kind of schedule: wsd"""
    decay: int = 4000
    """updates of the decay, the last ones before the horizon"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "scheduler", 1, "decay")
        if not self.by_the_clock and self.warmup + self.decay > self.horizon:
            raise ConfigError(
                f"scheduler.warmup ({self.warmup}) and scheduler.decay ({self.decay}) do not fit into "
                f"scheduler.horizon ({self.horizon}); a decay of a fifth of the horizon is usual"
            )

    def ending_at(self, horizon: int) -> EndingConfig:
        """The same with another horizon, and a decay that fits into it."""
        return replace(self, horizon=horizon, decay=min(self.decay, horizon - self.warmup))

    def fallen(self, step: int) -> float:
        """sqrt((step - (horizon - decay)) / decay), before that 0."""
        return math.sqrt(max(0, step - (self.horizon - self.decay)) / self.decay)


@SCHEDULERS.register("noam")
@dataclass(frozen=True)
class NoamConfig(SchedulerConfig):
    """The formula of Vaswani et al. (2017, section 5.3), whose lr_init is d_model ** -0.5."""

    name: str = "noam"
    """the kind of schedule: noam"""
    warmup: int = 4000
    """updates over which the rate rises to its peak, lr_init / sqrt(warmup)"""
    lr_init: float = 0.0625
    """factor of the formula; d_model ** -0.5 in the paper: 0.0625 for d_model 256"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lr_init <= 0:
            raise ConfigError(f"scheduler.lr_init ({self.lr_init}) must be above 0")

    def rate(self, step: int, peak: float) -> float:
        """lr_init * min(step ** -0.5, step * warmup ** -1.5); `peak` is not used."""
        return float(self.lr_init * min(step**-0.5, step * max(self.warmup, 1) ** -1.5))

    @property
    def has_own_peak(self) -> bool:
        """See SchedulerConfig.has_own_peak."""
        return True

    def setting_of(self, peak: float) -> str:
        """See SchedulerConfig.setting_of: the peak is lr_init / sqrt(warmup)."""
        return f"scheduler.lr_init={peak * max(self.warmup, 1) ** 0.5:.2g}"
