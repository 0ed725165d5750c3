"""The constant schedule."""

from dataclasses import dataclass

from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig


@SCHEDULERS.register("constant")
@dataclass(frozen=True)
class ConstantConfig(SchedulerConfig):
    """Linear warm-up to the peak, then constant."""

    name: str = "constant"
    """the kind of schedule: constant"""

    def rate(self, step: int, peak: float) -> float:
        """Return peak * min(step / warmup, 1)."""
        return peak * min(step / max(self.warmup, 1), 1.0)
