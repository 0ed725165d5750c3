"""What a metric is: statistics of each line, and a score from their sums. sacreBLEU's, and means of a number a line.

L lines, K statistics of a line under one metric, R resamples or trials.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tolka.metrics.line_statistics import Statistics, line_statistics
from tolka.metrics.options import MINIMIZED, PRINTED_NAMES
from tolka.version import __version__

Values = npt.NDArray[np.floating[Any]]
SEED = 12345  # of resamples and trials: the sacrebleu command's
REGISTERED: dict[str, Callable[[], Any]] = {}
"""Makers of the metrics that plugins have added, by the names of metrics.names."""


@dataclass(frozen=True)
class References:
    """What translations are scored against: a list of lines for each reference, and the sources, if they are known."""

    lists: Sequence[Sequence[str]]
    sources: Sequence[str] | None = None

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.lists[0])

    def rows(self, rows: Sequence[int]) -> "References":
        """Return these lines alone."""
        lists = [[each[row] for row in rows] for each in self.lists]
        return References(lists, None if self.sources is None else [self.sources[row] for row in rows])


class Metric(ABC):
    """A score of a corpus.

    name: as reports print it. lowest, highest: the ends of its scale. digits: decimals that are shown.
    """

    lowest, highest, digits = -math.inf, math.inf, 4

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def statistics(self, systems: Sequence[Sequence[str]], references: References) -> list[Statistics]:
        """Return (L, K) for each system."""

    @abstractmethod
    def value(self, sums: Any) -> Any:
        """Return the score from sums over lines, (K,), in their type of numbers."""

    @abstractmethod
    def signature(self, resamples: int = 0, trials: int = 0) -> str:
        """Return the signature of a score. resamples: of its interval. trials: of a randomisation test."""

    def values(self, sums: Any) -> Values:
        """Return the score of each row of sums, (R, K) -> (R,)."""
        return np.array([self.value(row) for row in sums])

    def line_values(self, statistics: Statistics) -> Values:
        """Return the score of each line, (L, K) -> (L,)."""
        return self.values(statistics.tolist())


class SacrebleuMetric(Metric):
    """A metric of sacreBLEU's, or one that is written like them."""

    def __init__(self, name: str, metric: Any, of_lines: Any = None) -> None:
        """of_lines: the metric with the options that sacreBLEU takes for single sentences, if they are others."""
        super().__init__(PRINTED_NAMES[name])
        self.metric, self._of_lines = metric, of_lines or metric
        if name not in REGISTERED:
            self.lowest, self.highest, self.digits = 0.0, math.inf if name in MINIMIZED else 100.0, 2

    def statistics(self, systems: Sequence[Sequence[str]], references: References) -> list[Statistics]:
        """Return (L, K) for each system."""
        return line_statistics(self.metric, systems, references.lists)

    def value(self, sums: Any) -> Any:
        """Return the score from sums over lines, (K,), in their type of numbers."""
        return self.metric._compute_score_from_stats(sums).score

    def line_values(self, statistics: Statistics) -> Values:
        """Return the score of each line, as `sacrebleu --sentence-level` does."""
        compute = self._of_lines._compute_score_from_stats
        return np.array([compute(row).score for row in statistics.tolist()])

    def signature(self, resamples: int = 0, trials: int = 0) -> str:
        """Return the signature that sacreBLEU gives to a score, or to a test of two systems.

        resamples: of the interval. trials: of the randomisation test; 0 for a score.
        """
        # It reads these two of the metric; "ar" and "bs" stand for the test of a comparison.
        self.metric.n_bootstrap, self.metric.seed = (resamples, str(SEED)) if resamples else (None, None)
        signature = self.metric.get_signature()
        if trials:
            signature.info.update(ar=trials, bs=None)
        return str(signature)


class Ratio(Metric):
    """A ratio of two numbers that are summed over the lines; a mean, where the second of them is 1."""

    def __init__(
        self,
        name: str,
        count: Callable[[Sequence[str], References], Sequence[tuple[float, float]]],
        how: str,
        scale: float = 1.0,
    ) -> None:
        """count: returns both numbers of each line of a system. how: for the signature. scale: of the ratio."""
        super().__init__(name)
        self._count, self._how, self._scale, self._lists = count, how, scale, 0

    def statistics(self, systems: Sequence[Sequence[str]], references: References) -> list[Statistics]:
        """Return (L, 2) for each system."""
        self._lists = len(references.lists)
        return [np.array(self._count(system, references), dtype=np.float64) for system in systems]

    def value(self, sums: Any) -> Any:
        """Return the ratio of two sums."""
        above, below = map(float, sums)
        return self._scale * above / (below if below > 0 else 1.0)

    def signature(self, resamples: int = 0, trials: int = 0) -> str:
        """Return a signature with sacreBLEU's keys, and how each line is counted."""
        test = f"ar:{trials}|seed:{SEED}|" if trials else f"bs:{resamples}|seed:{SEED}|" if resamples else ""
        return f"nrefs:{self._lists}|{test}how:{self._how}|tolka:{__version__}"


def exact_matches(system: Sequence[str], references: References) -> list[tuple[float, float]]:
    """Return for each line 1 if it is one of its references, else 0, and 1."""
    of_lines = zip(*references.lists, strict=True)
    return [(float(line in wanted), 1.0) for line, wanted in zip(system, of_lines, strict=True)]
