"""Bars that hold every text, and that long lines do not squash."""

import numpy as np
import pytest

from tolka.text.check.histogram import histograms, quarters


def test_by_hand() -> None:
    (found,) = histograms(np.array([0, 1, 1, 3]))
    assert (found.starts, found.counts) == (
        [0, 1, 2, 3],
        [1, 2, 0, 1],
    )  # bars of one, up to the quantile of 2.88; beyond it the last


@pytest.mark.parametrize("longest", [9, 60, 700, 100_000])
def test_bars_are_few_equal_and_hold_all(longest: int) -> None:
    lengths = np.random.default_rng(1).integers(0, longest + 1, 5000)
    (found,) = histograms(lengths)
    widths = set(np.diff(found.starts).tolist())
    assert len(widths) == 1
    assert 9 <= len(found.starts) <= 26
    assert sum(found.counts) == 5000
    for start, end, count in zip(found.starts, [*found.starts[1:], longest + 1], found.counts, strict=True):
        assert count == ((lengths >= start) & (lengths < end)).sum()


def test_a_long_line_is_in_the_last_bar() -> None:
    usual = np.arange(1, 101)
    (found,) = histograms(np.append(usual, 1_000_000))
    assert (found.starts[1], found.starts[-1]) == (4, 100)
    assert (found.counts[1], found.counts[-1]) == (4, 2)


def test_sides_compare() -> None:
    short, long = histograms(np.full(7, 3), np.full(5, 90))
    assert short.starts == long.starts
    assert (short.counts[0], sum(long.counts)) == (7, 5)


def test_nothing() -> None:
    nothing = np.array([], dtype=np.int64)
    assert [found.counts for found in histograms(nothing, nothing)] == [[0, 0]] * 2
    assert quarters(nothing) == []
    assert quarters(np.array([5, 1, 2, 3, 4])) == [1, 2, 3, 4, 5]
