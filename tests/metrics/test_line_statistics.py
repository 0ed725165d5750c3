"""Statistics of lines and their resamples, against plain indexing; memory against what indexing would take."""

import random
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from tolka.metrics import line_statistics
from tolka.metrics.line_statistics import exchanged_sums, resampled_sums, totals
from tolka.metrics.options import PRINTED_NAMES, MetricsConfig
from tolka.metrics.scores import score
from tolka.metrics.significance import compare

WORDS = ["river", "stone", "bread", "window", "letter", "garden", "silver", "morning"]


def lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) for _ in range(draw.randint(3, 9))) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 7, 101])
def test_resamples_are_sums_over_the_lines_that_numpy_draws(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sacrebleu draws them: all at once, of one generator. Here a few resamples at a time."""
    monkeypatch.setattr(line_statistics, "_DRAWS_AT_ONCE", 210)
    values = np.random.default_rng(1)
    matrices = [values.integers(0, 2**20, (count, width), dtype=np.int32) for width in (10, 2)]
    drawn = np.random.default_rng(5).choice(count, size=(64, count), replace=True)
    for matrix, found in zip(matrices, resampled_sums(matrices, 64, seed=5), strict=True):
        assert np.array_equal(found, matrix[drawn].sum(1).astype(np.float32))


@pytest.mark.parametrize("count", [1, 7, 101])
def test_exchanges_are_sums_over_the_coins_of_numpy(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As sacrebleu tosses them: all at once, of one generator. Here 32 trials at a time."""
    monkeypatch.setattr(line_statistics, "_DRAWS_AT_ONCE", 210)
    values = np.random.default_rng(1)
    systems = [(values.integers(0, 2**20, (count, k)), values.integers(0, 2**20, (count, k))) for k in (10, 2)]
    stays = np.random.default_rng(5).integers(2, size=(70, count), dtype=bool)
    statistics = [(a.astype(np.int32), b.astype(np.int32)) for a, b in systems]
    for (a, b), (first, second) in zip(systems, exchanged_sums(statistics, 70, seed=5), strict=True):
        assert np.array_equal(first, stays @ a + ~stays @ b)
        assert np.array_equal(second, ~stays @ a + stays @ b)


def test_sums_do_not_end_where_32_bits_do() -> None:
    assert totals(np.full((3, 1), 2**31 - 1, dtype=np.int32)) == [3 * (2**31 - 1)]


def test_chunks_change_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    config = MetricsConfig(names=[*PRINTED_NAMES], bootstrap=60)
    a, b, references = (lines(33, seed) for seed in (1, 2, 3))
    b[:20] = references[:20]
    whole = score(b, references, config), compare([a, b], references, config)
    monkeypatch.setattr(line_statistics, "_LINES_AT_ONCE", 10)
    assert (score(b, references, config), compare([a, b], references, config)) == whole


def test_chrf_alone_is_chrf_beside_chrf_plus_plus() -> None:
    hypotheses, references = lines(20, 1), lines(20, 2)
    (alone,) = score(hypotheses, references, MetricsConfig(names=["chrf"], bootstrap=40))
    assert alone == score(hypotheses, references, MetricsConfig(names=["chrf++", "ter", "chrf"], bootstrap=40))[2]


def peak(job: Callable[[], object]) -> int:
    """Bytes that Python and NumPy hold at once, at the most."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_resampling_copies_no_lines() -> None:
    """Indexing would make an array of 1000 x 4000 x 18 float32: 288 MB."""
    statistics = np.ones((4000, 18), dtype=np.int32)
    assert peak(lambda: resampled_sums([statistics], 1000, seed=1)) < 100e6


def test_n_grams_are_dropped_once_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the lines take hardly more memory: 72 bytes for each."""
    monkeypatch.setattr(line_statistics, "_LINES_AT_ONCE", 50)
    few, many = lines(100, 1), lines(400, 1)
    metric = CHRF()
    line_statistics.line_statistics(metric, [few], [few])  # what is kept from the first call on
    one = peak(lambda: line_statistics.line_statistics(metric, [few], [few]))
    assert peak(lambda: line_statistics.line_statistics(metric, [many], [many])) < 1.5 * one
