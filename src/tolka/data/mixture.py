"""Mixing several training texts in an epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.errors import DataError

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """How often an epoch draws from each text. rows: number of pairs of each text, in the order of the store.

    sizes: number of different pairs of each text in an epoch. draws: number of pairs with repetitions.
    """

    rows: tuple[int, ...]
    sizes: tuple[int, ...]
    draws: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Sequence[int], weights: Sequence[float] = (), temperature: float = 1.0, caps: Sequence[int] = ()
    ) -> "Mixture":
        """Return the mixture for weights, temperature and caps (see CorpusConfig). An epoch is as long as all texts.

        A text of which a cap leaves n pairs has the share of its weight, or with a temperature T a share proportional
        to n ** (1 / T) (Arivazhagan et al. 2019), however often the n pairs are repeated for it. DataError if no text
        with a weight has pairs.
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

        Of a text with a cap, a random part of the capped size is used. A text with more draws than pairs is repeated
        as a whole as often as possible; the remaining draws are random pairs of it.
        """
        if self.draws == self.rows:
            return rng.permutation(sum(self.rows))
        drawn, first = [], 0
        for rows, size, draws in zip(self.rows, self.sizes, self.draws, strict=True):
            repetitions, remainder = divmod(draws, size) if size else (0, 0)
            shuffled = rng.permutation(rows)[:size]
            drawn += [first + (np.arange(rows) if size == rows else shuffled)] * repetitions
            drawn.append(first + shuffled[:remainder])
            first += rows
        return rng.permutation(np.concatenate(drawn))

    def summary(self, names: Sequence[str]) -> str:
        """Return one phrase: 'news 2000 of 1000, web 500 of 90000'. names: of the texts.

        For a capped text that is repeated: 'web 800 of 100 (of 90000)'.
        """
        each = zip(names, self.draws, self.sizes, self.rows, strict=True)
        return ", ".join(
            f"{name} {draws} of {size} (of {rows})" if draws > size < rows else f"{name} {draws} of {rows}"
            for name, draws, size, rows in each
        )
