"""The linear schedule."""

from dataclasses import dataclass

from tolka.optim.schedules.base import SCHEDULERS, EndingConfig


@SCHEDULERS.register("linear")
@dataclass(frozen=True)
class LinearConfig(EndingConfig):
    """Linear decay: better than inverse_sqrt when the length is known beforehand."""

    name: str = "linear"
    """the kind of schedule: linear"""

    def decayed(self, step: int) -> float:
        """Return (step - warmup) / (horizon - warmup)."""
        return self.progress(step)
