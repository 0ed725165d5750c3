"""Misalignment: where two texts stop being parallel, judged by their lengths alone (as Gale and Church 1993 align)."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from tolka.text.pairs import FURTHER, NO_PAIR, PairSource

_WINDOW = 200  # pairs; over fewer, the correlation of lengths is too noisy
_HIGH, _LOW = 0.6, 0.35  # correlation of lengths where texts are parallel, and where they are not
_MAX_LAG = 5  # lines

Lengths = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shift:
    """A range of pairs, `first` (from 1) to `last`, whose sides' lengths do not correlate.

    lines: how far the target is behind the source there (1: a line too many in the target, or one too few in the
    source); 0 when no shift of a few lines restores the correlation. correlation: of log lengths, before and in it.
    """

    first: int
    last: int
    lines: int
    correlation: tuple[float, float]


def find_shift_in(source: PairSource) -> Shift | None:
    """Return the longest misaligned range of a text, by the numbers of its pairs; DataError where it cannot be read."""
    counts = array("Q")
    for number, pair in enumerate(source.read(), 1):
        if not pair.flaw.startswith((FURTHER, NO_PAIR)):
            counts.extend((number, len(pair.source.strip()), len(pair.target.strip())))
    numbers, sources, targets = np.array(counts).reshape(-1, 3).T
    return find_shift(sources.astype(np.float64), targets.astype(np.float64), numbers.tolist())


def find_shift(source: Lengths, target: Lengths, numbers: Sequence[int] | None = None) -> Shift | None:
    """Return the longest misaligned range while the rest is aligned; None if there is none, or too little text.

    source, target: (pairs,) characters of each side. numbers: (pairs,) from 1 on, where some pairs are left out.
    """
    # Of logarithms: a few long lines would outweigh all others.
    x, y = np.log1p(source), np.log1p(target)
    starts = range(0, len(x) - _WINDOW + 1, _WINDOW)
    correlations = np.array([correlation(x[i : i + _WINDOW], y[i : i + _WINDOW]) for i in starts])
    if len(correlations) < 2 or correlations.max() < _HIGH:
        return None
    windows = groupby(range(len(correlations)), key=lambda place: bool(correlations[place] < _LOW))
    longest = max(([*run] for is_low, run in windows if is_low), key=len, default=[])
    if not longest:
        return None
    end = longest[-1] + 1
    first, last = longest[0] * _WINDOW, len(x) if end == len(correlations) else end * _WINDOW
    # Where the correlation is that of parallel text: without the windows beside the range, which are partly shifted.
    aligned = np.concatenate([np.arange(0, max(0, first - _WINDOW)), np.arange(min(len(x), last + _WINDOW), len(x))])
    if len(aligned) < _WINDOW:
        aligned = np.arange(0, first) if first >= len(x) - last else np.arange(last, len(x))
    lines = _best_lag(x[first:last], y, first)
    # The windows give the beginning to 200 lines; with a known lag, the lengths give it to a few.
    if lines:
        usual = float(np.median(y[aligned] - x[aligned]))
        first = _edge(x, y, max(0, first - _WINDOW), min(len(x), first + _WINDOW), lines, usual)
    inside = correlation(x[first:last], y[first:last])
    numbers = range(1, len(x) + 1) if numbers is None else numbers
    return Shift(int(numbers[first]), int(numbers[last - 1]), lines, (correlation(x[aligned], y[aligned]), inside))


def correlation(x: Lengths, y: Lengths) -> float:
    """Return Pearson's correlation; 0 where a side does not vary."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 1 and x.std() and y.std() else 0.0


def _best_lag(x: Lengths, y: Lengths, first: int) -> int:
    """Return by how many lines the target must be shifted to be parallel; 0 if no shift of a few lines helps."""
    correlations = {}
    for lag in range(-_MAX_LAG, _MAX_LAG + 1):
        begin, end = first + lag, first + lag + len(x)
        inside = slice(max(0, -begin), len(x) - max(0, end - len(y)))
        correlations[lag] = correlation(x[inside], y[max(0, begin) : min(len(y), end)])
    best = max(correlations, key=lambda lag: correlations[lag])
    return best if correlations[best] > _LOW else 0


def _edge(x: Lengths, y: Lengths, begin: int, end: int, lag: int, usual: float) -> int:
    """Return where in begin..end the sides stop matching line by line and start matching with a lag.

    usual: difference of the log lengths of two parallel lines.
    """
    rows = np.arange(begin, end)
    unshifted = np.abs(y[rows] - x[rows] - usual)
    shifted = np.abs(y[np.clip(rows + lag, 0, len(y) - 1)] - x[rows] - usual)
    # cost[i]: of the first i lines as they stand, and of the others shifted.
    cost = np.concatenate([[0.0], np.cumsum(unshifted)]) + (shifted.sum() - np.concatenate([[0.0], np.cumsum(shifted)]))
    return begin + int(cost.argmin())
