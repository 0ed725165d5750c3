"""The warmup-stable-decay schedule."""

import math
from dataclasses import dataclass, replace

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, EndingConfig
from tolka.options.checks import at_least


@SCHEDULERS.register("wsd")
@dataclass(frozen=True)
class WarmupStableDecayConfig(EndingConfig):
    """Warm-up, a constant phase at the peak, and a short decay (Hu et al. 2024).

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
        if not self.by_wall_time and self.warmup + self.decay > self.horizon:
            raise ConfigError(
                f"scheduler.warmup ({self.warmup}) and scheduler.decay ({self.decay}) do not fit into "
                f"scheduler.horizon ({self.horizon}); a decay of a fifth of the horizon is usual"
            )

    def ending_at(self, horizon: int) -> EndingConfig:
        """Return the schedule with another horizon, and a decay that fits into it."""
        # By wall time the horizon may turn out to be shorter than warm-up and decay together.
        return replace(self, horizon=horizon, decay=min(self.decay, horizon - self.warmup))

    def decayed(self, step: int) -> float:
        """Return sqrt((step - (horizon - decay)) / decay), and 0 before the decay."""
        # Negative before the decay: the rate stays at its peak.
        return math.sqrt(max(0, step - (self.horizon - self.decay)) / self.decay)
