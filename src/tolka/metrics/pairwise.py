"""Sentence chrF of every text against every other one, as sacreBLEU computes it.

Shapes: M texts, G different n-grams of one order in them. Of a matrix (M, M), rows are hypotheses, columns references.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
_Ids = npt.NDArray[np.int64]
_CHARACTERS, _BETA = 6, 2  # sacreBLEU's orders of n-grams, and its beta


def chrf_matrix(texts: Sequence[str]) -> Matrix:
    """Return (M, M): chrF2, from 0 to 100, of each text as the hypothesis, with each text as the only reference.

    chrF2 (Popovic 2015) is the F-score, beta 2, of the mean precision and recall of n-grams of 1 to 6 characters.
    """
    characters = ["".join(text.split()) for text in texts]
    precision, recall, order_count = (np.zeros((len(texts), len(texts))) for _ in range(3))
    text = np.repeat(np.arange(len(texts)), [len(each) for each in characters])  # of each character
    # Renumbered from 0 in each order, so that the number of an n-gram times the number of symbols fits into 64 bits.
    symbols = np.unique(np.array([*map(ord, "".join(characters))], dtype=np.int64), return_inverse=True)[1]
    size, grams = int(symbols.max(initial=0)) + 1, symbols
    for order in range(_CHARACTERS):
        if order:  # an n-gram is the one before it and one more symbol
            grams = np.unique(grams[:-1] * size + symbols[order:], return_inverse=True)[1]
        inside = text[: len(grams)] == text[order:]
        matches = _matches(text[order:][inside], grams[inside], len(texts))
        totals = matches.diagonal()
        # An order counts only if both texts have n-grams of it.
        counts = (totals[:, None] > 0) & (totals > 0)
        precision += matches / np.maximum(totals[:, None], 1)
        recall += matches / np.maximum(totals, 1)
        order_count += counts
    # Precision and recall are sums over the orders here; their means differ by order_count, which is positive
    # where there is any match.
    below = (_BETA**2 * precision + recall) * np.maximum(order_count, 1)
    return 100.0 * (1 + _BETA**2) * precision * recall / np.where(below > 0, below, 1.0)


def chrf_of(hypothesis: str, reference: str) -> float:
    """Return the chrF2 of one hypothesis against one reference."""
    return float(chrf_matrix([hypothesis, reference])[0, 1])


def _matches(text: _Ids, grams: _Ids, texts: int) -> Matrix:
    """Return (M, M): how many n-grams each two texts share. text, grams: of each, the numbers of its text and its own.

    Two texts share only what stands in two of them, and a text shares all of its n-grams with itself.
    """
    pairs, times = np.unique(grams * max(texts, 1) + text, return_counts=True)  # each n-gram in each text once
    gram, in_text = np.divmod(pairs, max(texts, 1))
    is_shared = (np.bincount(gram) > 1)[gram]
    columns = np.unique(gram[is_shared], return_inverse=True)[1]
    counts = np.zeros((texts, int(columns.max(initial=-1)) + 1), dtype=np.int32)  # (M, G), of those in several texts
    counts[in_text[is_shared], columns] = times[is_shared]
    matches, below = np.zeros((texts, texts)), 0
    # min(a, b) is a sum over thresholds of whether both reach them: a matrix multiplication for each different count.
    for count in (1 + np.flatnonzero(np.bincount(counts.ravel())[1:])).tolist():
        reached = counts >= count
        reached = reached[:, reached.sum(axis=0) > 0].astype(np.float32)
        matches += (count - below) * (reached @ reached.T)
        below = count
    np.fill_diagonal(matches, np.bincount(text, minlength=texts))
    return matches
