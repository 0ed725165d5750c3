"""Calibrate estimates of quality on text with references, and measure how good they are.

Shapes: L lines, F features of a line.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tolka.engines.torch_engine import TorchEngine
from tolka.errors import DataError
from tolka.metrics.scores import line_chrf
from tolka.metrics.tables import table
from tolka.search.options import SearchConfig
from tolka.translation.batch_decoder import Tick
from tolka.translation.quality import BLOCKS, Calibration, Features, LinearMap, features_of
from tolka.translation.translator import Translator

_FEWEST = 100  # lines to fit on
_FEWEST_DIFFERENT = 20  # of them, with features of their own
_FOLDS = 5
_WORST = 0.1  # share of lines that are called the worst
_BINS = 5


@dataclass(frozen=True)
class EstimateQuality:
    """How well estimates predict the chrF of lines.

    pearson: correlation coefficient. worst_found: share of the tenth of the lines with the lowest chrF that is in the
    tenth with the lowest estimates; by chance it is 0.1. bins: fifths of the lines, from the lowest estimates to the
    highest: their number, mean estimate and mean chrF.
    """

    name: str
    pearson: float
    worst_found: float
    bins: list[tuple[int, float, float]]


def estimate_quality(name: str, estimates: Sequence[float], chrf: Sequence[float]) -> EstimateQuality:
    """Compare estimates with the chrF of the same lines."""
    x, y = np.array(estimates), np.array(chrf)
    order = np.argsort(x, kind="stable")
    count = max(1, round(_WORST * len(x)))
    worst = set(np.argsort(y, kind="stable")[:count].tolist())
    worst_found = len(worst & set(order[:count].tolist())) / count
    bins = [(len(part), float(x[part].mean()), float(y[part].mean())) for part in np.array_split(order, _BINS)]
    with np.errstate(invalid="ignore"):  # NaN if one side is constant
        pearson = float(np.corrcoef(x, y)[0, 1])
    return EstimateQuality(name, pearson, worst_found, bins)


@dataclass(frozen=True)
class CalibrationResult:
    """A calibration, and how good its estimates are for lines that it was not fitted on."""

    calibration: Calibration
    qualities: list[EstimateQuality]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"lines": self.calibration.lines, "estimates": [asdict(each) for each in self.qualities]}

    def __str__(self) -> str:
        rows = [[each.name, f"{each.pearson:.2f}", f"{100 * each.worst_found:.0f} %"] for each in self.qualities]
        best = self.qualities[-1]
        curve = [[str(count), f"{estimate:.1f}", f"{chrf:.1f}"] for count, estimate, chrf in best.bins]
        blocks = (
            table(rows, ["estimate from", "Pearson", "worst tenth found"], "lrr"),
            f"lines by their estimate from {best.name}, lowest first",
            table(curve, ["lines", "expected chrF", "measured chrF"], "rrr"),
            f"{self.calibration.lines} lines; chrF2 of each sentence (sacreBLEU's, nc:6|nw:0|space:no); "
            f"{_FOLDS}-fold cross-validation",
        )
        return "\n\n".join(blocks)


def calibrate_translator(
    translator: Translator[TorchEngine],
    sources: Sequence[str],
    references: Sequence[str],
    search: SearchConfig,
    tick: Tick = lambda share: None,
) -> CalibrationResult:
    """Fit the calibration of a model on sources and references. search: with which the translator was loaded.

    Lines with a blank side are left out. DataError if fewer than 100 are left. tick: as for `Translator.translate`.
    """
    form = translator.characters
    pairs = [pair for pair in zip(sources, references, strict=True) if form.source(pair[0]) and form.target(pair[1])]
    if len(pairs) < _FEWEST:
        raise DataError(
            f"a calibration needs at least {_FEWEST} lines with both sides, and there are {len(pairs)}: add some"
        )
    translations = translator.translate([source for source, _ in pairs], tick=tick)
    features = [each for each in features_of(translator, translations) if each is not None]
    assert len(features) == len(pairs), "only a blank text has no features"
    chrf = line_chrf([each.text for each in translations], [reference for _, reference in pairs]).tolist()
    if len(set(features)) < _FEWEST_DIFFERENT or len(set(chrf)) < 2:
        raise DataError(
            f"a calibration needs different lines, and of {len(pairs)} there are {len(set(features))} with estimates "
            f"of their own, and {len(set(chrf))} values of chrF: give it other text"
        )
    # Without folders: the calibration is written into the model directory, which may be published.
    named = replace(search, glossary=Path(search.glossary).name, banned=Path(search.banned).name)
    return fit_calibration(features, chrf, repr(named))


def fit_calibration(features: Sequence[Features], chrf: Sequence[float], search: str) -> CalibrationResult:
    """Fit the calibration by least squares, on features (L) and chrF (L), and measure it by cross-validation."""
    plain, predicted = _fit(features, chrf, with_agreement=False)
    qualities = [
        estimate_quality("mean probability alone", [each.mean for each in features], chrf),
        estimate_quality("token probabilities", predicted, chrf),
    ]
    # Only n-best lists have an agreement: a model that is translated greedily gets the map without it.
    with_agreement = None
    if sum(each.agreement is not None for each in features) >= _FEWEST:
        rows = [number for number, each in enumerate(features) if each.agreement is not None]
        chosen = [features[row] for row in rows], [chrf[row] for row in rows]
        with_agreement, predicted = _fit(*chosen, with_agreement=True)
        qualities.append(estimate_quality("probabilities and agreement", predicted, chosen[1]))
    values = np.array([each.values(with_agreement=False) for each in features])
    # The s for which means of n lines in a row deviate by s / sqrt(n), by batch means: it is the deviation of single
    # lines unless lines in a row, as of a document, share what the features do not tell.
    residuals = np.array_split(np.array(chrf) - values @ plain.weights, BLOCKS)
    error = math.sqrt(np.square([block.sum() / math.sqrt(len(block)) for block in residuals]).sum() / (BLOCKS - 1))
    spread = np.linalg.pinv(values.T @ values).tolist()
    return CalibrationResult(Calibration(plain, with_agreement, len(features), search, error, spread), qualities)


def _fit(features: Sequence[Features], chrf: Sequence[float], with_agreement: bool) -> tuple[LinearMap, list[float]]:
    """Return the map of all lines, by least squares, and an estimate of each line by a map of the other folds."""
    values = np.array([each.values(with_agreement) for each in features])  # (L, F)
    y = np.array(chrf)
    predicted = np.zeros(len(y))
    for start in range(_FOLDS):
        # Every fifth line, not a fifth of the text in one block: a text may change on its way.
        fold = np.arange(start, len(y), _FOLDS)
        others = np.setdiff1d(np.arange(len(y)), fold)
        weights = np.linalg.lstsq(values[others], y[others], rcond=None)[0]
        predicted[fold] = (values[fold] @ weights).clip(0, 100)
    # Below this a line is among the worst tenth, by estimates of lines that the map was not fitted on.
    low = float(np.quantile(predicted, _WORST))
    return LinearMap(np.linalg.lstsq(values, y, rcond=None)[0].tolist(), low), predicted.tolist()
