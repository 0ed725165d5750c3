"""Detection of duplicates, with 8 bytes per item."""

import numpy as np
import numpy.typing as npt


class MarkSet:
    """A set of 64-bit marks in sorted arrays, each twice as long as the next or longer: 8 bytes per mark."""

    def __init__(self) -> None:
        self._levels: list[npt.NDArray[np.uint64]] = []

    def add(self, marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Add marks (n,); return (n,), true where a mark occurs for the first time."""
        # In sorted order, with the position of the first of equal marks: of duplicates, the first pair is kept.
        values, first = np.unique(marks, return_index=True)
        known = np.zeros(len(values), dtype=np.bool_)
        for level in self._levels:
            positions = np.searchsorted(level, values)
            # A mark above all of the level's: position 0 is as good as any that holds another mark.
            positions[positions == len(level)] = 0
            known |= level[positions] == values
        self._merge(values[~known])
        new = np.zeros(len(marks), dtype=np.bool_)
        new[first[~known]] = True
        return new

    def _merge(self, values: npt.NDArray[np.uint64]) -> None:
        # As in a log-structured merge tree: n marks have at most log2(n) levels to search, and each mark is sorted
        # again at most as often.
        while self._levels and len(self._levels[-1]) < 2 * len(values):
            values = np.concatenate([self._levels.pop(), values])
            values.sort()
        if len(values):
            self._levels.append(values)
