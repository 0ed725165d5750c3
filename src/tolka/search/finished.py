"""The hypotheses of a beam that have ended: how many of each sentence there are, and the best of them.

Shapes: B sentences, c candidates a sentence, L tokens of the longest hypothesis.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.search.base import NEVER, take
from tolka.search.hypothesis import Hypothesis


@dataclass(frozen=True)
class Finished:
    """The finished hypotheses of a beam, in slots; the last slot is written to and never read."""

    tokens: Tensor  # (B, slots, L), `</s>` left out
    lengths: Tensor  # (B, slots), `</s>` counted
    log_p: Tensor  # (B, slots)
    count: Tensor  # (B,)
    best: Tensor  # (B, n): the n highest scores, in order; -inf where there are fewer

    @classmethod
    def empty(cls, beam_size: int, compared: int, limits: Tensor) -> Self:
        """Return none, with slots for a beam of beam_size, and the best `compared` scores.

        limits: (B,) most tokens of each sentence's translation.
        """
        # In the step in which the k-th hypothesis finishes, up to k do.
        zeros = torch.zeros(len(limits), 2 * beam_size + 1, dtype=torch.long, device=limits.device)
        tokens = zeros[..., None].repeat(1, 1, int(limits.max()))
        log_p = torch.zeros(zeros.shape, device=limits.device)
        best = log_p.new_full((len(limits), compared), NEVER)
        return cls(tokens, zeros, log_p, zeros[:, 0].clone(), best)

    def add(self, is_finished: Tensor, prefixes: Tensor, log_p: Tensor, penalty: float) -> Self:
        """Add the candidates that `is_finished` (B, c) marks, with prefixes (B, c, t) and log_p (B, c).

        penalty: lp of their length, t + 1. The object it is called on must not be used again.
        """
        # All candidates are written, those that are not finished into the last slot: to choose them by a mask would
        # wait for the device, to learn how many there are.
        slot = torch.where(is_finished, self.count[:, None] + is_finished.cumsum(1) - 1, self.lengths.size(1) - 1)
        self.tokens[..., : prefixes.size(2)].scatter_(1, slot[..., None].expand_as(prefixes), prefixes)
        self.lengths.scatter_(1, slot, prefixes.size(2) + 1)
        self.log_p.scatter_(1, slot, log_p)
        scores = (log_p / penalty).masked_fill(~is_finished, NEVER)
        # As a rule one translation is wanted, and a maximum takes less time than `topk`.
        if self.best.size(1) == 1:
            best = torch.maximum(self.best, scores.amax(dim=1, keepdim=True))
        else:
            best = torch.cat([self.best, scores], dim=1).topk(self.best.size(1), dim=1).values
        return type(self)(self.tokens, self.lengths, self.log_p, self.count + is_finished.sum(dim=1), best)

    def best_ones(self, count: int, penalty: Callable[[Tensor], Tensor]) -> Self:
        """Return the `count` best of each sentence, with the slots of the others free again. penalty: lp of lengths."""
        is_free = torch.arange(self.lengths.size(1), device=self.count.device) >= self.count[:, None]
        scores = (self.log_p / penalty(self.lengths)).masked_fill(is_free, NEVER)
        order = scores.topk(self.lengths.size(1), dim=1).indices
        tokens, lengths, log_p = (take(each, order) for each in (self.tokens, self.lengths, self.log_p))
        return type(self)(tokens, lengths, log_p, self.count.clamp(max=count), self.best)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All of its tensors, as it is made of them."""
        return self.tokens, self.lengths, self.log_p, self.count, self.best

    def select(self, rows: Tensor) -> Self:
        """Return the hypotheses of the sentences numbered `rows` (B',)."""
        return type(self)(*(each.index_select(0, rows) for each in self.tensors))

    def hypotheses(self, penalty: Callable[[float], float]) -> list[list[Hypothesis]]:
        """Return those of each sentence in the order in which they finished. penalty: lp of a length."""
        columns = (each.tolist() for each in (self.count, self.tokens, self.lengths, self.log_p))
        return [
            [
                Hypothesis(ids[: length - 1], log_p, log_p / penalty(length), finished=True)
                for ids, length, log_p in zip(tokens[:count], lengths, log_ps, strict=False)
            ]
            for count, tokens, lengths, log_ps in zip(*columns, strict=True)
        ]
