"""What the last third of a training brought, by its validations and the learning rate beside them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

_Points = list[tuple[int, float]]  # update and value


class LearningCurve:
    """The validations of a training. Where the rate fell at its end, the last third is that of the time before.

    A rate that falls makes score and loss better by itself. peak_until: the update until which it stayed at its peak; 0
    where it did not stay there, where that was less than half of the training, or before its first validation, and
    where it never fell.
    """

    def __init__(self, history: Sequence[Mapping[str, Any]]) -> None:
        """history: the lines of metrics.jsonl."""
        self._rates: _Points = [(line["update"], line["lr"]) for line in history if "lr" in line]
        # The mean of checkpoints is not a point of the curve.
        self._validations = [line for line in history if "valid_loss" in line and "mean_of_updates" not in line]
        self.peak_until = self._peak_until()

    def gained(self, metric: str) -> float | None:
        """Return what the last third of the updates added to the best score of a validation. metric: bleu or chrf.

        None where no validation is from before.
        """
        curve = self._points(metric)
        before = max(_before_last_third(curve), default=None)
        return None if before is None else float(max(score for _, score in curve) - before)

    @property
    def loss_fell(self) -> float:
        """The share of the validation loss that the last third of the updates took off.

        0 where the rate fell all the time, or where no validation is from before.
        """
        curve, peak = self._points("valid_loss"), max((rate for _, rate in self._rates), default=0.0)
        before = min(_before_last_third(curve), default=0.0)
        if not before or not self._rates or (not self.peak_until and self._rates[-1][1] < peak):
            return 0.0
        return float(1 - min(loss for _, loss in curve) / before)

    def _peak_until(self) -> int:
        peak = max((rate for _, rate in self._rates), default=0.0)
        at_peak = [update for update, rate in self._rates if rate >= peak]
        falling = [update for update, _ in self._rates if at_peak and update > at_peak[-1]]
        # A schedule without a constant stretch has its peak in one line.
        if len(at_peak) < 2 or not falling or 2 * at_peak[-1] < self._rates[-1][0]:
            return 0
        last = falling[0] - 1  # with the validation that began the decay
        return last if any(0 < line["update"] <= last for line in self._validations) else 0

    def _points(self, name: str) -> _Points:
        """Return the values of the validations at the peak rate; of all of them where it fell before."""
        last = self.peak_until or math.inf
        values = [(line["update"], line.get(name)) for line in self._validations if line["update"] <= last]
        return [(update, value) for update, value in values if value is not None]


def _before_last_third(curve: _Points) -> list[float]:
    """Return the values in the first two thirds of the updates."""
    return [value for update, value in curve if 3 * update <= 2 * curve[-1][0]]
