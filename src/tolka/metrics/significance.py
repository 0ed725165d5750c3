"""Paired tests: whether one system's score differs from another's by more than chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tolka.errors import ConfigError
from tolka.metrics.line_statistics import exchanged_sums, resampled_sums
from tolka.metrics.metric import SEED, References, Values
from tolka.metrics.options import FEWEST_RESAMPLES, MetricsConfig
from tolka.metrics.scores import Score, checked_references, interval_of, metrics_of, score_of, statistics_of

# Standard errors: 1.96 for p below 0.05, and 0.84 so that four of five differences exceed that.
_DETECTED = 2.8
_EQUAL = 1e-9  # differences of scores up to which they count as the same
PAIRED_TEST = "paired approximate randomisation"
"""The test that gives a comparison's p."""


@dataclass(frozen=True)
class Comparison:
    """Two systems under one metric. difference: b minus a; interval: its 95 % by paired resamples.

    p_value: by approximate randomisation. systems: the places of both among those that were compared. p_adjusted: p
    after Holm's correction for all pairs of these under this metric; p itself where there are but two. detectable: the
    difference from which on systems that differ as these do are told apart, with p below 0.05, in four of five test
    sets of this size.
    """

    name: str
    a: Score
    b: Score
    difference: float
    p_value: float
    signature: str
    interval: tuple[float, float] | None = None
    p_adjusted: float = 1.0
    detectable: float = 0.0
    systems: tuple[int, int] = (0, 1)


def compare(
    systems: Sequence[Sequence[str]], references: Sequence[str] | References, config: MetricsConfig, language: str = ""
) -> list[Comparison]:
    """Compare every two of several systems, the earlier as the baseline: all pairs of a metric, then the next one's.

    p is by approximate randomisation (Riezler and Maxwell 2005), as of `sacrebleu --paired-ar`. Raises as `score` does.
    """
    if config.bootstrap == 0:
        raise ConfigError(f"metrics.bootstrap (0) must be at least {FEWEST_RESAMPLES} to compare two systems: try 1000")
    references = checked_references(systems, references)
    metrics, pairs = metrics_of(config, language), list(combinations(range(len(systems)), 2))
    statistics = statistics_of(metrics, systems, references)
    samples = resampled_sums([each for of_metric in statistics for each in of_metric], config.bootstrap, SEED)
    of_pairs = [(of_metric[a], of_metric[b]) for of_metric in statistics for a, b in pairs]
    trials = exchanged_sums(of_pairs, config.bootstrap, SEED)
    found: list[Comparison] = []
    for number, (metric, own) in enumerate(zip(metrics, statistics, strict=True)):
        resampled = [metric.values(sums) for sums in samples[number * len(systems) :][: len(systems)]]
        measured = zip(own, resampled, strict=True)
        scores = [score_of(metric, counts, interval_of(each), len(each)) for counts, each in measured]
        of_metric = []
        for (a, b), exchanged in zip(pairs, trials[number * len(pairs) :][: len(pairs)], strict=True):
            difference, changes = scores[b].value - scores[a].value, resampled[b] - resampled[a]
            first, second = (metric.values(sums.tolist()) for sums in exchanged)
            p_value = randomisation_p(second - first, difference)
            signature = metric.signature(len(changes), len(first))
            detectable = _DETECTED * float(changes.std(ddof=1, dtype=np.float64))
            figures = difference, p_value, signature, interval_of(changes), p_value, detectable
            of_metric.append(Comparison(metric.name, scores[a], scores[b], *figures, (a, b)))
        adjusted = holm([each.p_value for each in of_metric])
        found += [replace(each, p_adjusted=p) for each, p in zip(of_metric, adjusted, strict=True)]
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values that hold for all of several tests together (Holm 1979), in their order."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def gaps_to_best(systems: Sequence[Values], trials: int = 1000) -> list[tuple[float, float]]:
    """Return (difference, p) of each system from the best by its mean score: 0 and 1 for the best itself.

    systems: (S, L), the scores on L lines of S trainings that differ in their seed alone. p pays for having picked the
    best on these lines: the share of trials, in which coins change the signs of lines' differences, whose largest
    difference of any two systems, in standard errors, is as large (max-T, Westfall and Young 1993). Seeds add variance.
    """
    means = np.array([each.mean(0) for each in systems])  # (K, L)
    best, lines = int(means.mean(1).argmax()), means.shape[1]
    signs = np.random.default_rng(SEED).choice((-1.0, 1.0), size=(trials, lines))
    sums, largest = signs @ (means - means.mean(0)).T, np.zeros(trials)  # (trials, K)
    for a, b in combinations(range(len(means)), 2):
        length = np.linalg.norm(means[a] - means[b]) or 1.0
        largest = np.maximum(largest, np.abs(sums[:, a] - sums[:, b]) / length)
    freedom = sum(map(len, systems)) - len(systems)
    squares = sum(float(each.mean(1).var() * len(each)) for each in systems)
    # Of these, what comes from single lines on which seeds differ: it is in the variance of the lines already.
    residuals = (each - each.mean(0) - each.mean(1, keepdims=True) + each.mean() for each in systems)
    of_lines = sum(float(np.square(each / lines).sum()) for each in residuals)
    found = []
    for own, trained in zip(means - means[best], map(len, systems), strict=True):
        share = (1 / trained + 1 / len(systems[best])) / max(1, freedom)
        variance = float(np.square(own / lines).sum()) + share * max(0.0, squares - of_lines)
        deviation = abs(float(own.mean())) / math.sqrt(variance or 1.0)
        if squares and variance:
            # Student's t, with Satterthwaite's degrees of freedom, as a normal deviation (Wallace 1959).
            own_freedom = freedom * (variance / (share * squares)) ** 2
            spread = math.sqrt(own_freedom * math.log1p(deviation**2 / own_freedom))
            deviation = spread * (8 * own_freedom + 1) / (8 * own_freedom + 3)
        found.append((float(own.mean()), randomisation_p(largest, deviation)))
    return found


def randomisation_p(differences: npt.NDArray[np.floating[Any]], observed: float) -> float:
    """Return (c + 1) / (n + 1), where c of the n differences are at least as large as the observed one, of any sign."""
    # The real outcome counts as one of the trials. sacrebleu does not count those that are exactly as large, so that
    # two systems that differ in one line get the smallest p there is.
    return float((np.abs(differences) >= abs(observed) - _EQUAL).sum() + 1) / (len(differences) + 1)
