"""The schedules that are one formula: constant, inverse square root, noam, linear and cosine."""

import math
from dataclasses import dataclass
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, EndingConfig, SchedulerConfig


@SCHEDULERS.register("constant")
@dataclass(frozen=True)
class ConstantConfig(SchedulerConfig):
    """Linear warm-up to the peak, then constant."""

    name: str = "constant"
    """the kind of schedule: constant"""

    def rate(self, step: int, peak: float) -> float:
        """Return peak * min(step / warmup, 1)."""
        return peak * min(step / max(self.warmup, 1), 1.0)


@SCHEDULERS.register("inverse_sqrt")
@dataclass(frozen=True)
class InverseSqrtConfig(SchedulerConfig):
    """Linear warm-up to the peak, then decay with the inverse square root of the step."""

    name: str = "inverse_sqrt"
    """the kind of schedule: inverse_sqrt"""

    def rate(self, step: int, peak: float) -> float:
        """Return peak * min(step / warmup, sqrt(warmup / step))."""
        warmup = max(self.warmup, 1)
        return float(peak * min(step / warmup, (warmup / step) ** 0.5))


@SCHEDULERS.register("noam")
@dataclass(frozen=True)
class NoamConfig(SchedulerConfig):
    """The formula of Vaswani et al. (2017, section 5.3), whose lr_init is d_model ** -0.5."""

    USES_LR: ClassVar[bool] = False

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
        """Return lr_init * min(step ** -0.5, step * warmup ** -1.5); `peak` is not used."""
        # The two terms are equal at step = warmup, the peak.
        return float(self.lr_init * min(step**-0.5, step * max(self.warmup, 1) ** -1.5))


@SCHEDULERS.register("linear")
@dataclass(frozen=True)
class LinearConfig(EndingConfig):
    """Linear decay: better than inverse_sqrt when the length is known beforehand."""

    name: str = "linear"
    """the kind of schedule: linear"""

    def decayed(self, step: int) -> float:
        """Return (step - warmup) / (horizon - warmup)."""
        return self.progress(step)


@SCHEDULERS.register("cosine")
@dataclass(frozen=True)
class CosineConfig(EndingConfig):
    """Cosine decay (Loshchilov and Hutter 2017, equation 5), without their restarts."""

    name: str = "cosine"
    """the kind of schedule: cosine"""

    def decayed(self, step: int) -> float:
        """Return (1 - cos(pi * (step - warmup) / (horizon - warmup))) / 2."""
        return (1.0 - math.cos(math.pi * self.progress(step))) / 2.0
