"""Minimum Bayes risk decoding: the translation that is most like all others that the model may give.

Shapes: M different texts among the N hypotheses of a sentence.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tolka.metrics.pairwise import chrf_matrix
from tolka.search.hypothesis import Hypothesis, Rendered
from tolka.search.options import MbrConfig as MbrConfig
from tolka.search.options import Selection


class MinimumBayesRisk(Selection):
    """Choose the hypothesis with the highest mean chrF2, the others being its references (Eikema and Aziz 2020)."""

    def __init__(self, count: int, among: Selection | None = None) -> None:
        """count: how many hypotheses are returned, at most. among: chooses those that are compared; None = all."""
        self._count, self._among = count, among

    def select(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Rendered]:
        """Return the best hypotheses, no text twice; the score of each is its mean chrF2, from 0 to 100.

        The mean is over the N - 1 other hypotheses, of which several may have the same text; that of a single
        hypothesis is that to itself. Of equal ones, the first counts as the best.
        """
        if self._among is not None:
            texts, hypotheses = zip(*self._among.select(texts, hypotheses), strict=True)
        # Equal samples are compared once and counted: the matrix costs M^2 comparisons, not N^2.
        counts = Counter(texts)
        different, count = list(counts), np.array(list(counts.values()), dtype=np.float64)  # (M,)
        utility = chrf_matrix(different)  # (M, M)
        # Over all N references, less its utility to itself once.
        total = utility @ count - utility.diagonal()
        mean = total / (len(texts) - 1) if len(texts) > 1 else utility.diagonal()
        best = np.argsort(-mean, kind="stable")[: self._count].tolist()
        chosen = [(different[number], float(mean[number])) for number in best]
        # The first hypothesis of each text.
        return [(text, replace(hypotheses[texts.index(text)], score=value)) for text, value in chosen]
