"""Mixing several training texts in an epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.errors import DataError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """How much of each text an epoch takes. rows: pairs of each text, as they follow each other in the store.

    sizes: how many different ones of them an epoch takes. draws: how many it takes in all, repetitions counted.
    """

    rows: tuple[int, ...]
    sizes: tuple[int, ...]
    draws: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Sequence[int], weights: Sequence[float] = (), temperature: float = 1.0, caps: Sequence[int] = ()
    ) -> "Mixture":
        """Return the mixture for weights, temperature and caps (see CorpusConfig). An epoch is as long as all texts.

        A part of which a cap leaves n pairs has the share that its weight says, or with a temperature T one in
        proportion to n ** (1 / T) (Arivazhagan et al. 2019), however often these n are repeated for it.
        DataError when nothing is left of what has a weight.
        """
        sizes = [min(n, cap) if cap else n for n, cap in zip(rows, caps or [0] * len(rows), strict=True)]
        if not weights and temperature == 1:
            return cls(tuple(rows), tuple(sizes), tuple(sizes))
        shares = np.array([n ** (1 / temperature) for n in sizes], dtype=np.float64)
        if weights:
            shares = np.array(weights, dtype=np.float64) * (np.array(sizes) > 0)
        if not shares.sum():
            raise DataError("of the texts that corpus.weights would draw from no pair is left after cleaning")
        draws = np.maximum(np.rint(shares / shares.sum() * sum(sizes)), shares > 0).astype(int).tolist()
        return cls(tuple(rows), tuple(sizes), tuple(draws))

    def draw(self, rng: np.random.Generator) -> Rows:
        """Return the row numbers of one epoch in random order.

        A part with a cap is first cut down to its size, at random. One of which more is drawn than that comes whole, as
        often as that goes, and then in part, at random.
        """
        if self.draws == self.rows:
            return rng.permutation(sum(self.rows))
        drawn, first = [], 0
        for rows, size, draws in zip(self.rows, self.sizes, self.draws, strict=True):
            times, rest = divmod(draws, size) if size else (0, 0)
            shuffled = rng.permutation(rows)[:size]
            drawn += [first + (np.arange(rows) if size == rows else shuffled)] * times
            drawn.append(first + shuffled[:rest])
            first += rows
        return rng.permutation(np.concatenate(drawn))

    def summary(self, names: Sequence[str]) -> str:
        """Return a phrase: 'news 2000 of 1000 pairs, web 500 of 90000'. names: of the texts.

        Where a capped part is repeated: 'web 800 of 100 (of 90000)'.
        """
        each = zip(names, self.draws, self.sizes, self.rows, strict=True)
        return ", ".join(
            f"{name} {draws} of {size} (of {rows})" if draws > size < rows else f"{name} {draws} of {rows}"
            for name, draws, size, rows in each
        )
