"""The schedule that lowers the rate at plateaus."""

from collections.abc import Sequence
from dataclasses import dataclass

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig
from tolka.options.checks import at_least


@SCHEDULERS.register("plateau")
@dataclass(frozen=True)
class PlateauConfig(SchedulerConfig):
    """Linear warm-up to the peak, then constant until trainer.metric stops improving, which lowers the rate."""

    name: str = "plateau"
    """the kind of schedule: plateau"""
    patience: int = 3
    """validations without a better trainer.metric after which the rate is lowered; trainer.patience ends training"""
    factor: float = 0.5
    """what a plateau multiplies the rate by"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "scheduler", 1, "patience")
        if not 0.0 < self.factor < 1.0:
            raise ConfigError(f"scheduler.factor ({self.factor}) must be above 0 and below 1")

    def rate(self, step: int, peak: float) -> float:
        """Return peak * min(step / warmup, 1), before it is lowered."""
        return peak * min(step / max(self.warmup, 1), 1.0)

    def is_plateau(self, stale: int, patience: int, plateaus: Sequence[int]) -> bool:
        # Validations that are not better are counted from the best one: at each multiple as many have passed since the
        # rate was lowered.
        ends = 0 < patience <= stale
        return stale > 0 and stale % self.patience == 0 and not ends

    def lowered(self, plateaus: Sequence[int]) -> float:
        """Return factor ** plateaus."""
        return float(self.factor ** len(plateaus))
