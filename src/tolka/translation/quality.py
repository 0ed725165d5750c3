"""Estimates of how good translations are, from the model's own probabilities; no reference is needed.

A translation's features are the geometric mean of its tokens' probabilities, the lowest of these, and, where the search
returns several translations, its mean chrF to the others. `mt-eval calibrate` fits a linear map from them to the
sentence's chrF. Without it, the estimate is the geometric mean, which ranks lines but is not a score.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tolka.errors import CheckpointError, reason_of
from tolka.metrics.pairwise import chrf_matrix
from tolka.model_directory.verify import QUALITY
from tolka.text.direction import Direction
from tolka.translation.results import Translation
from tolka.translation.scoring import SegmentScorer, scores_of_texts

LOW_PROBABILITY = 0.4
"""Geometric mean of the token probabilities below which an estimate without calibration is low."""

BLOCKS = 10  # of the calibration's lines, whose means tell its error
_QUANTILE = 2.262  # Student's, 97.5 %, for 9 degrees of freedom


@dataclass(frozen=True)
class Features:
    """The features from which the quality of a translation is estimated.

    mean, lowest: of the probabilities of its tokens, `</s>` included; the mean is the geometric one. agreement: mean
    chrF, 0 to 100, of the translation with each of its alternatives as the reference; None without alternatives.
    """

    mean: float
    lowest: float
    agreement: float | None

    @classmethod
    def of(cls, token_scores: Sequence[float], texts: Sequence[str]) -> "Features":
        """Return the features of the first of several translations of a text.

        token_scores: log-probabilities of its tokens, in nats, at least one. texts: of all of them.
        """
        mean = math.exp(sum(token_scores) / len(token_scores))
        agreement = float(chrf_matrix(texts)[0, 1:].mean()) if len(texts) > 1 else None
        return cls(mean, math.exp(min(token_scores)), agreement)

    def values(self, with_agreement: bool) -> list[float]:
        """Return the values that a LinearMap weights; the first is the constant 1, for the intercept."""
        return [1.0, self.mean, self.lowest, *([self.agreement or 0.0] if with_agreement else [])]


@dataclass(frozen=True)
class Estimate:
    """An estimate of the quality of a translation.

    kind: chrf = the expected chrF2 of the sentence, 0 to 100; probability = the geometric mean of the token
    probabilities, 0 to 1. is_low: with a calibration, whether it is below nine tenths of the estimates for the lines of
    the calibration; without it, whether it is below LOW_PROBABILITY.
    """

    kind: str
    value: float
    is_low: bool


@dataclass(frozen=True)
class LinearMap:
    """A linear map from features to chrF. weights: of `Features.values`. low: a tenth of its estimates is below it."""

    weights: list[float]
    low: float

    def chrf(self, values: Sequence[float]) -> float:
        """Return the expected chrF, from 0 to 100."""
        # A linear map knows no bounds: far from its data it would leave the scale.
        return min(100.0, max(0.0, sum(w * x for w, x in zip(self.weights, values, strict=True))))


class Forecast(NamedTuple):
    """An expected mean chrF2, and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ({self.low:.1f} to {self.high:.1f})"


@dataclass(frozen=True)
class Calibration:
    """Maps from features to the chrF of a sentence, fitted on `lines` pairs of text.

    plain: of the token probabilities alone. with_agreement: of these and the agreement with the alternatives, for
    translations that have some; None if there were too few to fit it. search: the search that it was fitted with.
    error: s, where s / sqrt(n) is the standard deviation, in chrF, of the mean of n lines from that of their estimates
    by `plain`. spread: (X^T X)^-1 (F, F) of the features X (L, F).
    """

    plain: LinearMap
    with_agreement: LinearMap | None
    lines: int
    search: str
    error: float
    spread: list[list[float]]

    @classmethod
    def by_direction(cls, scores: Mapping[str, Any]) -> "dict[str, Calibration]":
        """Return the calibrations in a model's scores.json: under "", or of a model of several by their directions."""
        values = scores.get(QUALITY)
        try:
            each = {} if values is None else values.get("directions", {"": values})
            return {key: cls._read(own) for key, own in each.items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = reason_of(error)
            raise CheckpointError(f"scores.json: the calibration of quality estimates is damaged ({reason})") from None

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> "Calibration":
        plain, agreement, lines = _map(values["plain"], 3), values["with_agreement"], int(values["lines"])
        with_agreement = None if agreement is None else _map(agreement, 4)
        error, spread = float(values["error"]), np.array(values["spread"], float)
        if not (math.isfinite(error) and spread.shape == (3, 3) and np.isfinite(spread).all()):
            raise ValueError(f"error and spread are {error} and {spread.tolist()}")
        return cls(plain, with_agreement, lines, str(values["search"]), error, spread.tolist())

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as `by_direction` reads them."""
        return asdict(self)

    def beside(self, scores: Mapping[str, Any], direction: Direction) -> dict[str, Any]:
        """Return the plain values of a direction beside those of others in a model's scores.json."""
        others = (scores.get(QUALITY) or {}).get("directions", {})
        return {"directions": {**others, str(direction): self.as_dict()}}

    def forecast(self, totals: npt.NDArray[np.float64]) -> "Forecast":
        """Return the forecast of the mean chrF2 of lines. totals: sums of their `Features.values` without agreement.

        The interval for the mean of new observations of a regression, with Student's distribution.
        """
        lines = float(totals[0])  # the sum of ones
        means = totals / lines
        mean = min(100.0, max(0.0, float(means @ self.plain.weights)))
        # Of the lines themselves, and of the weights, which were fitted on a sample.
        variance = self.error**2 * (1 / lines + max(0.0, means @ np.array(self.spread) @ means))
        half_width = _QUANTILE * math.sqrt(variance)
        return Forecast(mean, max(0.0, mean - half_width), min(100.0, mean + half_width))


def _map(values: Mapping[str, Any], count: int) -> LinearMap:
    """Read a LinearMap of `count` weights; ValueError, KeyError or TypeError for other values."""
    weights, low = [float(weight) for weight in values["weights"]], float(values["low"])
    if len(weights) != count or not all(map(math.isfinite, (*weights, low))):
        raise ValueError(f"{count} finite weights and a limit were expected, not {weights} and {low}")
    return LinearMap(weights, low)


def estimate(features: Features, calibration: Calibration | None) -> Estimate:
    """Return the estimate of a translation with these features."""
    if calibration is None:
        return Estimate("probability", features.mean, features.mean < LOW_PROBABILITY)
    of_several = calibration.with_agreement if features.agreement is not None else None
    chosen = of_several or calibration.plain
    value = chosen.chrf(features.values(with_agreement=of_several is not None))
    return Estimate("chrf", value, value < chosen.low)


def features_of(scorer: SegmentScorer, translations: Sequence[Translation]) -> list[Features | None]:
    """Return the features of each translation, from another forward pass; None for that of a blank text."""
    scores = scores_of_texts(scorer, [each.segments for each in translations])
    return [
        Features.of(of_tokens, [candidate.text for candidate in each.candidates]) if of_tokens else None
        for each, of_tokens in zip(translations, scores, strict=True)
    ]
