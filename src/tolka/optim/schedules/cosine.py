"""The cosine schedule."""

import math
from dataclasses import dataclass

from tolka.optim.schedules.base import SCHEDULERS, EndingConfig


@SCHEDULERS.register("cosine")
@dataclass(frozen=True)
class CosineConfig(EndingConfig):
    """Cosine decay (Loshchilov and Hutter 2017, equation 5), without their restarts."""

    name: str = "cosine"
    """the kind of schedule: cosine"""

    def decayed(self, step: int) -> float:
        """Return (1 - cos(pi * (step - warmup) / (horizon - warmup))) / 2."""
        return (1.0 - math.cos(math.pi * self.progress(step))) / 2.0
