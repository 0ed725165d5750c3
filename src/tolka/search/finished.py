"""The best hypotheses of a beam that have ended.

Shapes: B sentences, n hypotheses of each at most, c candidates a sentence, L tokens of the longest hypothesis.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.kernels.ending import are_surely_none
from tolka.search.base import NEVER, take
from tolka.search.hypothesis import Hypothesis


class Finished(NamedTuple):
    """The n best finished hypotheses of each sentence, best first."""

    tokens: Tensor  # (B, n, L), `</s>` left out
    lengths: Tensor  # (B, n), `</s>` counted
    log_p: Tensor  # (B, n)
    scores: Tensor  # (B, n): log p over the length penalty; -inf where there are fewer

    @classmethod
    def empty(cls, count: int, limits: Tensor) -> Self:
        """Return none. count: n. limits: (B,) most tokens of each sentence's translation."""
        lengths = torch.zeros(len(limits), count, dtype=torch.long, device=limits.device)
        log_p = torch.zeros(lengths.shape, device=limits.device)
        return cls(lengths[..., None].expand(-1, -1, int(limits.max())), lengths, log_p, log_p + NEVER)

    def add(self, is_finished: Tensor, prefixes: Tensor, log_p: Tensor, penalty: float) -> Self:
        """Return the best of these and of the candidates that `is_finished` (B, c) marks.

        prefixes: (B, c, t). log_p: (B, c). penalty: lp of their length, t + 1.
        """
        if are_surely_none(is_finished):  # as in most steps
            return self
        scores = torch.cat([self.scores, (log_p / penalty).masked_fill(~is_finished, NEVER)], dim=1)
        # Of equal ones the first stays first, whatever is in the batch beside them.
        values, order = (each[:, : self.scores.size(1)] for each in scores.sort(dim=1, descending=True, stable=True))
        # What follows a hypothesis's tokens is never read.
        longer = F.pad(prefixes, (0, self.tokens.size(2) - prefixes.size(2)))
        lengths = self.lengths.new_full(log_p.shape, prefixes.size(2) + 1)
        both = [(self.tokens, longer), (self.lengths, lengths), (self.log_p, log_p)]
        tokens, lengths, log_p = (take(torch.cat(each, dim=1), order) for each in both)
        return type(self)(tokens, lengths, log_p, values)

    def select(self, rows: Tensor) -> Self:
        """Return the hypotheses of the sentences numbered `rows` (B',)."""
        return type(self)(*(each.index_select(0, rows) for each in self))

    def hypotheses(self, penalty: Callable[[float], float]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first. penalty: lp of a length."""
        return [
            [
                Hypothesis(ids[: length - 1], log_p, log_p / penalty(length), finished=True)
                for ids, length, log_p, score in zip(*of_sentence, strict=True)
                if score > NEVER
            ]
            for of_sentence in zip(*(each.tolist() for each in self), strict=True)
        ]
