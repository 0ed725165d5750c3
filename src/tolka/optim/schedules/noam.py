"""The schedule of the paper 'Attention Is All You Need'."""

from dataclasses import dataclass

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig


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
        """Return lr_init * min(step ** -0.5, step * warmup ** -1.5); `peak` is not used."""
        # The two terms are equal at step = warmup, the peak.
        return float(self.lr_init * min(step**-0.5, step * max(self.warmup, 1) ** -1.5))

    @property
    def uses_lr(self) -> bool:
        """False: the peak is lr_init / sqrt(warmup)."""
        return False
