"""Mixing several training texts in an epoch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.errors import DataError
from tolka.text.direction import Direction

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """How often an epoch draws from each text. rows: number of pairs of each text, in the order of the store.

    draws: number of pairs in an epoch, with repetitions.
    """

    rows: tuple[int, ...]
    draws: tuple[int, ...]

    @classmethod
    def of(
        cls,
        rows: Sequence[int],
        weights: Sequence[float] = (),
        temperature: float = 1.0,
        directions: Sequence[Direction] = (),
        cap: int = 0,
    ) -> "Mixture":
        """Return the mixture for weights, temperature and cap (see CorpusConfig). An epoch is as long as all texts.

        A text of n pairs has the share of its weight, or with a temperature T a share proportional to n ** (1 / T)
        (Arivazhagan et al. 2019). directions: of each text; of several, n is the number of pairs in a direction, whose
        texts share what is drawn of it by their length, and of which an epoch has at most `cap`.
        DataError if no text with a weight has pairs.
        """
        several = len({*directions}) > 1
        groups = [*directions] if several else [*range(len(rows))]
        sizes = Counter[object]()
        for group, n in zip(groups, rows, strict=True):
            sizes[group] += n
        mixture = cls._weighted(rows, weights, temperature, [sizes[group] for group in groups])
        if not (several and cap):
            return mixture
        drawn = Counter[object]()
        for group, draws in zip(groups, mixture.draws, strict=True):
            drawn[group] += draws
        capped = [
            draws if drawn[group] <= cap else max(1, round(draws * cap / drawn[group])) if draws else 0
            for group, draws in zip(groups, mixture.draws, strict=True)
        ]
        return cls(tuple(rows), tuple(capped))

    @classmethod
    def _weighted(
        cls, rows: Sequence[int], weights: Sequence[float], temperature: float, sizes: Sequence[int]
    ) -> "Mixture":
        """Return the mixture without a cap. sizes: number of pairs of what each text is a part of."""
        if not weights and temperature == 1:
            return cls(tuple(rows), tuple(rows))
        # T = 1 draws from each text by its size, a large T from all alike: small texts are drawn from more often.
        shares = np.array(
            [n and n / size * size ** (1 / temperature) for n, size in zip(rows, sizes, strict=True)], dtype=np.float64
        )
        if weights:
            shares = np.array(weights, dtype=np.float64) * (np.array(rows) > 0)
        if not shares.sum():
            raise DataError("of the texts that corpus.weights would draw from no pair is left after cleaning")
        # Of a text with a share at least one pair is drawn, however small the share.
        draws = np.maximum(np.rint(shares / shares.sum() * sum(rows)), shares > 0).astype(int).tolist()
        return cls(tuple(rows), tuple(draws))

    def draw(self, rng: np.random.Generator) -> Rows:
        """Return the row numbers of one epoch in random order."""
        if self.draws == self.rows:
            return rng.permutation(sum(self.rows))
        drawn, first = [], 0
        for rows, draws in zip(self.rows, self.draws, strict=True):
            # Repeated as a whole as often as possible, so that no two pairs' draws differ by more than one; the
            # remaining draws are random pairs.
            repetitions, remainder = divmod(draws, rows) if rows else (0, 0)
            drawn += [first + np.arange(rows)] * repetitions
            drawn.append(first + rng.permutation(rows)[:remainder])
            first += rows
        return rng.permutation(np.concatenate(drawn))

    def summary(self, names: Sequence[str]) -> str:
        """Return one phrase: 'news 2000 of 1000, web 500 of 90000'. names: of the texts."""
        each = zip(names, self.draws, self.rows, strict=True)
        return ", ".join(f"{name} {draws} of {rows}" for name, draws, rows in each)
