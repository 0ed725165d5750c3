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
    ) -> "Mixture":
        """Return the mixture for weights and temperature (see CorpusConfig). An epoch is as long as all texts.

        A text of n pairs has the share of its weight, or with a temperature T a share proportional to n ** (1 / T)
        (Arivazhagan et al. 2019). directions: of each text; of several, n is the number of pairs in a direction, whose
        texts share what is drawn of it by their length. DataError if no text with a weight has pairs.
        """
        if not weights and temperature == 1:
            return cls(tuple(rows), tuple(rows))
        groups = directions if len({*directions}) > 1 else range(len(rows))
        grouped, sizes = [*zip(groups, rows, strict=True)], Counter[object]()
        for group, n in grouped:
            sizes[group] += n
        # T = 1 draws from each text by its size, a large T from all alike: small texts are drawn from more often.
        shares = np.array([n and n / sizes[group] * sizes[group] ** (1 / temperature) for group, n in grouped])
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
