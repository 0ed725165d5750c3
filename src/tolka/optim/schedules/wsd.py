"""The warmup-stable-decay schedule."""

import math
from dataclasses import dataclass, replace

from tolka.errors import ConfigError
from tolka.optim.schedules.base import SCHEDULERS, EndingConfig
from tolka.options.checks import zero_or_more

# A fifth of all updates, as in the paper; at a plateau, half of those so far. On 1000 pairs of Tatoeba en-de that had
# 22.97 chrF2 (5.86 BLEU), a quarter 22.56 (5.37), and no decay 22.14 (5.08). Halving the rate at each plateau had 23.03
# (5.64), and took a third longer.
_DECAY_SHARE, _SHARE_AT_PLATEAU = 5, 2


@SCHEDULERS.register("wsd")
@dataclass(frozen=True)
class WarmupStableDecayConfig(EndingConfig):
    """Warm-up, a constant phase at the peak, and a short decay (Hu et al. 2024).

    The decay has the shape 1 - sqrt, which Hägele et al. (2024, section 3) found better than a straight line, and as
    good as a cosine once it takes a fifth of the updates.

    With horizon 0 the decay begins when trainer.patience validations have brought nothing better, or in time to end
    with trainer.max_minutes or trainer.updates.
    """

    name: str = "wsd"
    """the kind of schedule: wsd"""
    decay: int = 0
    """updates of the decay, the last ones before the horizon; 0 = a fifth of all, or half of those before a plateau"""

    def __post_init__(self) -> None:
        super().__post_init__()
        zero_or_more(self, "scheduler", "a fifth of the horizon", "decay")
        if not self.by_wall_time and self.warmup + self.decay > self.horizon:
            raise ConfigError(
                f"scheduler.warmup ({self.warmup}) and scheduler.decay ({self.decay}) do not fit into "
                f"scheduler.horizon ({self.horizon}); a decay of a fifth of the horizon is usual"
            )

    def ending_at(self, horizon: int) -> EndingConfig:
        """Return the schedule with another horizon, and a decay that fits into it."""
        # By wall time the horizon may turn out to be shorter than warm-up and decay together.
        return replace(self, horizon=horizon, decay=min(self.decay, horizon - self.warmup))

    @property
    def decays_at_plateau(self) -> bool:
        return self.by_wall_time

    def last_update(self, plateau: int) -> int | None:
        if not (plateau and self.decays_at_plateau):
            return None
        return plateau + (self.decay or max(1, plateau // _SHARE_AT_PLATEAU))

    def paced(self, step: int, share: float, updates: int, plateau: int = 0) -> EndingConfig:
        """Return the schedule with its end as by time, or earlier with a decay that began at the plateau."""
        paced, last = super().paced(step, share, updates), self.last_update(plateau)
        if last is None:
            return paced
        horizon = max(plateau + 1, min(paced.horizon, last))
        return replace(self, horizon=horizon, decay=horizon - plateau)

    def decayed(self, step: int) -> float:
        """Return sqrt((step - (horizon - decay)) / decay), and 0 before the decay."""
        decay = self.decay or max(1, min(self.horizon // _DECAY_SHARE, self.horizon - self.warmup))
        # Negative before the decay: the rate stays at its peak.
        return math.sqrt(max(0, step - (self.horizon - decay)) / decay)
