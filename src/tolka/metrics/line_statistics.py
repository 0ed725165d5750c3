"""Sufficient statistics of sacrebleu's metrics per line, in compact matrices, and what the tests draw from them.

L lines, K statistics of a line under one metric, R resamples or trials.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Statistics = npt.NDArray[Any]
"""int32 where all are whole numbers, else float64."""
Sums = npt.NDArray[np.float32]
Totals = npt.NDArray[np.float64]
_Weights = npt.NDArray[np.int64] | npt.NDArray[np.bool_]

_LINES_AT_ONCE = 200  # whose n-grams are in memory together; with 2000 BLEU takes 1.4 times as long
_DRAWS_AT_ONCE = 2**22  # of lines, 8 bytes each


def line_statistics(
    metric: Any, systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> list[Statistics]:
    """Return (L, K) statistics of each system under a sacrebleu metric, computed in chunks of lines.

    references: one or more lists of lines. Statistics are whole numbers, but for TER with several references.
    """
    chunks: list[list[Statistics]] = [[] for _ in systems]
    for start in range(0, len(references[0]), _LINES_AT_ONCE):
        rows = slice(start, start + _LINES_AT_ONCE)
        # sacrebleu's own cache of the references, which are counted once for all systems.
        metric._ref_cache = metric._cache_references([each[rows] for each in references])
        for system, matrices in zip(systems, chunks, strict=True):
            found = np.array(metric._extract_corpus_statistics(system[rows], None))
            whole = found.astype(np.int32)
            matrices.append(whole if (whole == found).all() else found)
    metric._ref_cache = None
    return [np.concatenate(matrices) for matrices in chunks]


def totals(statistics: Statistics) -> list[float]:
    """Return the sums over the lines, (K,)."""
    return list(statistics.sum(0, dtype=np.int64 if statistics.dtype.kind == "i" else np.float64).tolist())


def resampled_sums(statistics: Sequence[Statistics], resamples: int, seed: int) -> list[Sums]:
    """Return (R, K) of each matrix: sums over L lines drawn with replacement, the same lines for all of them.

    The draws are those of sacrebleu for this seed.
    """
    # sacrebleu adds in float32, which is exact up to 2 ** 24; here sums are exact, and rounded to float32 in the end.
    lines = len(statistics[0])
    draws = np.random.default_rng(seed)

    def times_drawn(rows: int) -> _Weights:
        return np.stack([np.bincount(draws.choice(lines, lines), minlength=lines) for _ in range(rows)])

    return [total.astype(np.float32) for total in _weighted_sums(statistics, times_drawn, resamples, 1)]


def exchanged_sums(
    systems: Sequence[tuple[Statistics, Statistics]], trials: int, seed: int
) -> list[tuple[Totals, Totals]]:
    """Return (R, K) twice for each metric's two systems: sums after a coin per line decided which system has which.

    The same lines are exchanged for all metrics. The coins are those of sacrebleu for this seed.
    """
    coins = np.random.default_rng(seed)
    lines = len(systems[0][0])

    # numpy takes 32 coins from one random number, and drops what is left of it at the end of a call.
    differences = [a - b for a, b in systems]
    gains = _weighted_sums(differences, lambda rows: coins.integers(2, size=(rows, lines), dtype=bool), trials, 32)
    firsts = [gain + totals(b) for gain, (_, b) in zip(gains, systems, strict=True)]
    both = (np.add(totals(a), totals(b)) for a, b in systems)
    return [(first, total - first) for first, total in zip(firsts, both, strict=True)]


def _weighted_sums(
    statistics: Sequence[Statistics], draw: Callable[[int], _Weights], count: int, multiple: int
) -> list[Totals]:
    """Return (count, K) of each matrix: sums over the lines, each taken as often as `draw` says.

    draw: returns the weights of that many rows, (rows, L). multiple: of rows that are drawn at once.
    """
    lines, matrices = len(statistics[0]), [each.astype(np.float64) for each in statistics]
    sums = [np.zeros((count, matrix.shape[1])) for matrix in matrices]
    at_once = multiple * max(1, _DRAWS_AT_ONCE // (lines * multiple))
    for start in range(0, count, at_once):
        stop = min(start + at_once, count)
        # A matrix multiplication instead of sacrebleu's gather of each resample's rows; float64 is exact for counts.
        weights = draw(stop - start).astype(np.float64)
        for total, matrix in zip(sums, matrices, strict=True):
            total[start:stop] = weights @ matrix
    return sums
