"""Paired tests: whether one system's score differs from another's by more than chance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tolka.errors import ConfigError
from tolka.metrics.line_statistics import Counts, Sums, Totals, exchanged_sums, resampled_sums, totals
from tolka.metrics.scores import (
    FEWEST_RESAMPLES,
    SEED,
    MetricsConfig,
    Score,
    check_counts,
    interval_of,
    metrics_of,
    statistics_of,
)

_EQUAL = 1e-9  # differences of scores up to which they count as the same


@dataclass(frozen=True)
class Comparison:
    """Two systems under one metric. difference: b minus a.

    p_value: by approximate randomisation if the signature has `ar`, else by sacrebleu's paired bootstrap (`bs`).
    """

    name: str
    a: Score
    b: Score
    difference: float
    p_value: float
    signature: str


def paired_test(signature: str) -> str:
    """Return the name of the test that gave a comparison's p."""
    return "paired approximate randomisation" if "|ar:" in signature else "sacreBLEU's paired bootstrap"


def compare(
    a: Sequence[str], b: Sequence[str], references: Sequence[str], config: MetricsConfig, language: str = ""
) -> list[Comparison]:
    """Test whether system b differs from the baseline a, by `metrics.significance`. Raises as `score` does.

    paired-ar: approximate randomisation (Riezler and Maxwell 2005). paired-bs: p of `sacrebleu --paired-bs`, but 1 for
    scores that are equal; it is too small by its construction (score.md).
    """
    if config.bootstrap == 0:
        raise ConfigError(f"metrics.bootstrap (0) must be at least {FEWEST_RESAMPLES} to compare two systems: try 1000")
    check_counts(a, references)
    check_counts(b, references)
    metrics = metrics_of(config, language)
    statistics = statistics_of(metrics, [a, b], references)
    samples = resampled_sums([counts for pair in statistics for counts in pair], config.bootstrap, SEED)
    trials: Sequence[tuple[Totals, Totals] | None] = [None] * len(metrics)
    if config.significance == "paired-ar":
        trials = exchanged_sums([(a, b) for a, b in statistics], config.bootstrap, SEED)
    return [
        _comparison(name, metric, statistics[number], samples[2 * number : 2 * number + 2], trials[number])
        for number, (name, metric) in enumerate(metrics.items())
    ]


def randomisation_p(differences: npt.NDArray[np.floating[Any]], observed: float) -> float:
    """Return (c + 1) / (n + 1), where c of the n differences are at least as large as the observed one, of any sign."""
    # The real outcome counts as one of the trials. sacrebleu does not count those that are exactly as large, so that
    # two systems that differ in one line get the smallest p there is.
    return float((np.abs(differences) >= abs(observed) - _EQUAL).sum() + 1) / (len(differences) + 1)


def sacrebleu_bootstrap_p(differences: npt.NDArray[np.floating[Any]], observed: float) -> float:
    """Return sacrebleu's p: (c + 1) / (n + 1), where c of n |differences| exceed their mean by more than |observed|."""
    # Folding to one sign before centring, as sacrebleu does, leaves too small a spread, and thus too small a p.
    folded = np.abs(differences)
    return float((folded - folded.mean() > abs(observed)).sum() + 1) / (len(folded) + 1) if observed else 1.0


def _comparison(
    name: str,
    metric: Any,
    statistics: Sequence[Counts],
    samples: Sequence[Sums],
    trials: tuple[Totals, Totals] | None,
) -> Comparison:
    """Compare two systems, from their statistics and resampled sums, the baseline's first; without trials, by these."""
    from sacrebleu.significance import estimate_ci

    signature = metric.get_signature()
    values = [float(metric._compute_score_from_stats(totals(counts)).score) for counts in statistics]
    resamples = [_each_score(metric, sums) for sums in samples]
    intervals = [interval_of(name, *estimate_ci(each)) for each in resamples]
    a, b = (Score(name, *found, str(signature)) for found in zip(values, intervals, strict=True))
    difference = b.value - a.value
    if trials is None:
        p_value = sacrebleu_bootstrap_p(resamples[1] - resamples[0], difference)
    else:
        first, second = (_each_score(metric, sums.tolist()) for sums in trials)
        p_value = randomisation_p(second - first, difference)
        signature.info.update(ar=len(first), bs=None)  # sacrebleu's, of this test
    return Comparison(name, a, b, difference, p_value, str(signature))


def _each_score(metric: Any, sums: Iterable[Any]) -> npt.NDArray[np.floating[Any]]:
    return np.array([metric._compute_score_from_stats(row).score for row in sums])
