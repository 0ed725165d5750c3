"""The inverse square root schedule."""

from dataclasses import dataclass

from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig


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
