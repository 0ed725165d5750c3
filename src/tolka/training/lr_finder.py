"""The learning-rate range test (Smith 2017, section 3.3): train while the rate grows, and watch the loss.

Each rate is held for one update only, so the loss is lowest at a rate that would be too high for a whole training: the
recommended rate lies well below it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tolka.errors import TolkaError
from tolka.optim.schedules.base import SchedulerConfig
from tolka.system.progress import bar
from tolka.training.trainer import Trainer

_LOWEST, _DECADES, _UPDATES_PER_DECADE = 1e-6, 7, 25
_UPDATES = _DECADES * _UPDATES_PER_DECADE + 1
# Batches hold sentences of similar length, and long ones have a higher loss: it varies by 0.4 nats between batches.
_SMOOTHING = 7.5  # updates, the standard deviation of a Gaussian: 0.3 decades
_RECENT = 5  # updates whose mean loss is checked for divergence
_DIVERGED = 1.0  # nats above the lowest mean: each token e times less likely
_LEAST_FALL = 0.2  # nats; less is noise
# Share of the fall at which the loss levels off. Found by trial on Multi30k, AdamW, 1850 target tokens an update:
#
#                                     transformer_tiny, two seeds     transformer_small
#   a peak known to train well        0.002 to 0.005                  about 0.001
#   0.85 of the fall                  0.0028, 0.0028                  0.00091
#   steepest fall                     0.0007 to 0.0017                0.0004 to 0.0005
#   a tenth of the rate at the lowest 0.0046 to 0.013                 0.0027 to 0.0046
#
# The last two vary with the seed and with how much is smoothed, 0.85 by 1.2 times at most.
_FALL_SHARE = 0.85


@dataclass(frozen=True)
class Sweep(SchedulerConfig):
    """The test's schedule: each update's rate is the same factor above the one before."""

    warmup: int = 0

    def rate(self, step: int, peak: float) -> float:
        """Return 1e-6 * 10 ** ((step - 1) / 25)."""
        return float(_LOWEST * 10.0 ** ((step - 1) / _UPDATES_PER_DECADE))


@dataclass(frozen=True)
class RangeTest:
    """The rates tried, the losses, and the recommended rate.

    losses: nll per token in nats, in training mode, without label smoothing: `train_loss` of metrics.jsonl.
    recommended: the first rate at which the smoothed loss had come 85 % of its way down to its lowest.
    """

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    recommended: float

    def reason(self) -> str:
        """Return a phrase that explains the recommendation."""
        first, lowest = self.smoothed[0], min(self.smoothed)
        turn = self.rates[self.smoothed.index(lowest)]
        return (
            f"there the loss had come {_FALL_SHARE:.0%} of its way from {first:.2f} to {lowest:.2f} nats a token, "
            f"its lowest, which it had at {turn:.2g} (tried: {_LOWEST:g} to {self.rates[-1]:.2g})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for lr_finder.json."""
        curve = zip(self.rates, self.losses, self.smoothed, strict=True)
        return {
            "recommended": self.recommended,
            "reason": self.reason(),
            "curve": [{"lr": rate, "train_loss": loss, "smoothed": smooth} for rate, loss, smooth in curve],
        }


def range_test(trainer: Trainer) -> RangeTest:
    """Run the test on a trainer that has trained nothing yet; its weights, optimizer and data position change.

    Accumulation, clipping and precision are the trainer's own. TolkaError when no rate makes the loss fall by 0.2 nats.
    """
    if trainer.config.consistency_after:
        # The loss must not change during the test: take that of the last update at the schedule's peak.
        updates = trainer.config.updates
        schedule = trainer.scheduler.paced(1, 0.0, updates)  # a schedule by wall time: as if it allowed all updates
        peaks_at = max(range(1, updates + 1), key=lambda update: (schedule.rate(update, trainer.peak), update))
        single_pass = trainer.config.consistency_after >= peaks_at
        trainer.step.config = replace(trainer.config, consistency_after=_UPDATES if single_pass else 0)
    trainer.scheduler = Sweep()
    trainer.objective.train()
    losses: list[float] = []
    with bar("trying learning rates", _UPDATES, " updates") as progress:
        while len(losses) < _UPDATES and not diverged(losses):
            loss = trainer.probe()
            if not math.isfinite(loss):
                break
            losses.append(loss)
            progress.update()
    return judge(losses)


def diverged(losses: Sequence[float]) -> bool:
    """Return whether the mean of the last five losses is a nat above the lowest such mean."""
    means = [sum(losses[end - _RECENT : end]) / _RECENT for end in range(_RECENT, len(losses) + 1)]
    return bool(means) and means[-1] > min(means) + _DIVERGED


def judge(losses: Sequence[float]) -> RangeTest:
    """Return the recommendation for losses at the sweep's rates; TolkaError if they fall by less than 0.2 nats."""
    # The last losses may be tens of nats higher, and would lift the smoothed curve far around them.
    capped = [min(loss, losses[0] + _DIVERGED) for loss in losses]
    smoothed = [_smoothed(capped, index) for index in range(len(capped))]
    rates = [Sweep().rate(step, 0.0) for step in range(1, len(losses) + 1)]
    fall = smoothed[0] - min(smoothed) if smoothed else 0.0
    if fall < _LEAST_FALL:
        raise TolkaError(
            f"no learning rate can be recommended: the loss fell by less than {_LEAST_FALL:g} nats in {len(losses)} "
            f"updates from {_LOWEST:g} up; a model that is trained already has little to fall, a fresh one may need "
            "trainer.precision=fp32"
        )
    index = next(index for index, loss in enumerate(smoothed) if loss <= smoothed[0] - _FALL_SHARE * fall)
    return RangeTest(rates, list(losses), smoothed, rates[index])


def _smoothed(losses: Sequence[float], index: int) -> float:
    """Return the mean loss around an update, weighted by a centred Gaussian, so that it does not lag."""
    weights = [math.exp(-0.5 * ((other - index) / _SMOOTHING) ** 2) for other in range(len(losses))]
    return sum(weight * loss for weight, loss in zip(weights, losses, strict=True)) / sum(weights)
