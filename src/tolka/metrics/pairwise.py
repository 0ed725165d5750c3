"""Sentence chrF and BLEU of every text against every other one, as sacreBLEU computes them.

Shapes: M texts, G different n-grams of one order in them. Of a matrix (M, M), rows are hypotheses, columns references.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.metrics.languages import choose_bleu_tokenizer

Matrix = npt.NDArray[np.float64]
_Ids = npt.NDArray[np.int64]
UTILITIES = ("chrf", "bleu")
_CHARACTERS, _WORDS, _BETA = 6, 4, 2  # sacreBLEU's: orders of n-grams of chrF and of BLEU, and chrF's beta


class Pairwise(ABC):
    """A sentence-level metric, from 0 to 100, over all pairs of a few texts."""

    @abstractmethod
    def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return (M, M): the score of each text as the hypothesis, with each text as the only reference."""

    def score(self, hypothesis: str, reference: str) -> float:
        """Return the score of one hypothesis against one reference."""
        return float(self.matrix([hypothesis, reference])[0, 1])


def pairwise(name: str, language: str = "") -> Pairwise:
    """Return one of UTILITIES. language: the target's code, from which BLEU's tokenizer follows."""
    return PairwiseChrf() if name == "chrf" else PairwiseBleu(choose_bleu_tokenizer(language)[0])


class PairwiseChrf(Pairwise):
    """chrF2 (Popovic 2015): F-score, beta 2, of the mean precision and recall of n-grams of 1 to 6 characters."""

    def matrix(self, texts: Sequence[str]) -> Matrix:
        characters = ["".join(text.split()) for text in texts]
        orders = _n_grams([np.array([*map(ord, text)], dtype=np.int64) for text in characters], _CHARACTERS)
        precision, recall, order_count = (np.zeros((len(texts), len(texts))) for _ in range(3))
        for order in orders:
            # An order counts only if both texts have n-grams of it.
            counts = (order.totals[:, None] > 0) & (order.totals > 0)
            precision += order.matches / np.maximum(order.totals[:, None], 1)
            recall += order.matches / np.maximum(order.totals, 1)
            order_count += counts
        # Precision and recall are sums over the orders here; their means differ by order_count, which is positive
        # where there is any match.
        below = (_BETA**2 * precision + recall) * np.maximum(order_count, 1)
        return 100.0 * (1 + _BETA**2) * precision * recall / np.where(below > 0, below, 1.0)


class PairwiseBleu(Pairwise):
    """Sentence BLEU with exponential smoothing and effective order (Chen and Cherry 2014; Post 2018)."""

    def __init__(self, tokenizer: str = "13a") -> None:
        """tokenizer: one of sacreBLEU's, by its name."""
        from sacrebleu.metrics.bleu import BLEU

        self._tokenize: Callable[[str], str] = BLEU(tokenize=tokenizer, effective_order=True).tokenizer

    def matrix(self, texts: Sequence[str]) -> Matrix:
        words = [self._tokenize(text.rstrip()).split() for text in texts]
        numbers: dict[str, int] = {}
        orders = _n_grams(
            [np.array([numbers.setdefault(w, len(numbers)) for w in each], dtype=np.int64) for each in words], _WORDS
        )
        shape = len(texts), len(texts)
        smoothing, log_precision, order_count = np.ones(shape), np.zeros(shape), np.zeros(shape)
        for order in orders:
            present = np.broadcast_to(order.totals[:, None] > 0, shape)
            # Exponential smoothing: the first order without a match has half a match, the next a quarter, and so on.
            missed = present & (order.matches == 0)
            smoothing = np.where(missed, 2 * smoothing, smoothing)
            hits = np.where(missed, 1 / smoothing, order.matches)
            precision = np.where(present, hits / np.maximum(order.totals[:, None], 1), 1.0)
            log_precision += np.log(precision)
            order_count += present
        lengths = orders[0].totals
        # The brevity penalty of Papineni et al. (2002), as a logarithm.
        brevity = np.minimum(0.0, 1 - lengths / np.maximum(lengths[:, None], 1))
        scores = 100 * np.exp(brevity + log_precision / np.maximum(order_count, 1))
        # sacreBLEU returns 0 without any match; a longer n-gram that matches has shorter ones that do.
        return np.where(orders[0].matches > 0, scores, 0.0)


@dataclass(frozen=True)
class _Order:
    """The n-grams of one order: how many each text has (M,), and how many each two texts share (M, M)."""

    totals: npt.NDArray[np.float64]
    matches: Matrix


def _n_grams(texts: Sequence[_Ids], longest: int) -> list[_Order]:
    """Count the n-grams of 1 to `longest` symbols of each text, which is given as numbers."""
    # Renumbered from 0 in each order, so that the number of an n-gram times the number of symbols fits into 64 bits.
    symbols = np.unique(np.concatenate([*texts, np.zeros(0, dtype=np.int64)]), return_inverse=True)[1]
    text = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    grams, ends = symbols, np.arange(len(symbols))  # the number of each n-gram, and where its last symbol is
    size = int(symbols.max(initial=0)) + 1
    orders = []
    for order in range(longest):
        if order:
            # An n-gram is the one before it and one more symbol, if that is of the same text.
            inside = ends + 1 < len(symbols)
            grams, ends = grams[inside], ends[inside] + 1
            inside = text[ends] == text[ends - order]
            grams, ends = grams[inside], ends[inside]
            grams = np.unique(grams * size + symbols[ends], return_inverse=True)[1]
        orders.append(_matches(text[ends], grams, len(texts)))
    return orders


def _matches(text: _Ids, grams: _Ids, texts: int) -> _Order:
    """Return an order's counts. text, grams: of each n-gram, the number of its text and its own number.

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
    totals = np.bincount(text, minlength=texts).astype(np.float64)
    np.fill_diagonal(matches, totals)
    return _Order(totals, matches)
