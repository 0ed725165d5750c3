"""How often an epoch draws from each part of a text that has several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.errors import DataError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """rows: the pairs of each part, as they follow each other in the store. draws: pairs that an epoch takes of it."""

    rows: tuple[int, ...]
    draws: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Sequence[int], weights: Sequence[float] = (), temperature: float = 1.0, caps: Sequence[int] = ()
    ) -> "Mixture":
        """weights, temperature, caps: see CorpusConfig. An epoch has at most as many pairs as the parts, capped, have.

        With a temperature T, a part of n pairs is drawn from in proportion to n ** (1 / T) (Arivazhagan et al. 2019).
        DataError when nothing is left of what has a weight.
        """
        sizes = [min(n, cap) if cap else n for n, cap in zip(rows, caps or [0] * len(rows), strict=True)]
        if not weights and temperature == 1:
            return cls(tuple(rows), tuple(sizes))
        shares = np.array([n ** (1 / temperature) for n in sizes], dtype=np.float64)
        if weights:
            shares = np.array(weights, dtype=np.float64) * (np.array(sizes) > 0)
        if not shares.sum():
            raise DataError("of the texts that corpus.weights would draw from no pair is left after cleaning")
        draws = np.maximum(np.rint(shares / shares.sum() * sum(sizes)), shares > 0).astype(int).tolist()
        if caps:
            draws = [min(often, cap) if cap else often for often, cap in zip(draws, caps, strict=True)]
        return cls(tuple(rows), tuple(draws))

    def draw(self, rng: np.random.Generator) -> Rows:
        """Row numbers of one epoch in random order.

        A part of which more is drawn than it has comes whole, as often as that goes, and then in part, at random.
        """
        if self.draws == self.rows:
            return rng.permutation(sum(self.rows))
        drawn, first = [], 0
        for rows, draws in zip(self.rows, self.draws, strict=True):
            times, rest = divmod(draws, rows) if rows else (0, 0)
            drawn += [np.arange(first, first + rows)] * times
            drawn.append(first + rng.permutation(rows)[:rest])
            first += rows
        return rng.permutation(np.concatenate(drawn))

    def summary(self, names: Sequence[str]) -> str:
        """A phrase: 'news 2000 of 1000 pairs, web 500 of 90000'; names: of the parts."""
        each = zip(names, self.draws, self.rows, strict=True)
        return ", ".join(f"{name} {draws} of {rows}" for name, draws, rows in each)
