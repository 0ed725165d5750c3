"""Learning-rate schedules: pure functions of the step, which counts from 1."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tolka.checks import zero_or_more
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


@SCHEDULERS.register("linear")
@dataclass(frozen=True)
class LinearConfig(SchedulerConfig):
    """Linear warm-up to the peak, then a straight line down: the better curve when the length is known beforehand."""

    name: str = "linear"
    """the kind of schedule: linear"""
    horizon: int = 20000
    """update at which the line reaches its floor; a key of its own, so that raising trainer.updates bends nothing"""
    floor: float = 0.01
    """share of the peak that is left at the horizon, and after it"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon <= self.warmup:
            raise ConfigError(
                f"scheduler.horizon ({self.horizon}) must be longer than scheduler.warmup ({self.warmup}); "
                "set it to trainer.updates"
            )
        if not 0.0 <= self.floor <= 1.0:
            raise ConfigError(f"scheduler.floor ({self.floor}) must be from 0 to 1")

    def rate(self, step: int, peak: float) -> float:
        """peak * step / warmup, then peak * (1 - (1 - floor) * (step - warmup) / (horizon - warmup))."""
        if step < self.warmup:
            return peak * step / self.warmup
        way = min(1.0, (step - self.warmup) / (self.horizon - self.warmup))
        return peak * (1.0 - (1.0 - self.floor) * way)


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
