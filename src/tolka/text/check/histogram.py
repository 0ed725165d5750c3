"""Histograms of text lengths, with bars of equal width that one long line does not compress."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

_MAX_BARS = 30
_REGULAR_SHARE = 0.95  # minimum share of the texts in bars of equal width; the others share the last bar
_ROUND_WIDTHS = (1, 2, 3, 4, 5, 6, 8)

Lengths = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Histogram:
    """A histogram of text lengths. starts: smallest length of each bar; the last has no upper end. counts: of texts."""

    starts: list[int]
    counts: list[int]


def histograms(*sides: Lengths) -> list[Histogram]:
    """Return one histogram per side, of lengths (texts,), all with the same bars."""
    # Bars up to the 95 % quantile of the longer side, of the smallest round width by which they are few enough.
    limit = max((int(np.quantile(side, _REGULAR_SHARE)) for side in sides if len(side)), default=0)
    width = next(w for w in (r * 10**power for power in count() for r in _ROUND_WIDTHS) if w * (_MAX_BARS - 1) > limit)
    starts = np.arange(limit // width + 2) * width
    bars = [np.bincount(np.minimum(side // width, len(starts) - 1), minlength=len(starts)) for side in sides]
    return [Histogram(starts.tolist(), bar.tolist()) for bar in bars]


def quarters(lengths: Lengths) -> list[int]:
    """Return the minimum, the quartiles and the maximum; [] for no texts."""
    return np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]).astype(int).tolist() if len(lengths) else []
