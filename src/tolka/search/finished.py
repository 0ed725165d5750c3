"""The parts of a beam: which hypotheses are finished, and which are extended.

Shapes: B active sentences, k beam size, c = 2k candidates a sentence, t tokens so far.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.search.base import NEVER, Candidates
from tolka.search.hypothesis import Hypothesis


@dataclass(frozen=True)
class Finished:
    """The finished hypotheses, in slots; the last slot is written to and never read.

    tokens (B, slots, L) with `</s>` left out; lengths (B, slots), `</s>` counted; log_p (B, slots); count (B,); best
    (B, n): the n highest scores among them, in order, -inf where there are fewer.
    """

    tokens: Tensor
    lengths: Tensor
    log_p: Tensor
    count: Tensor
    best: Tensor

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

        penalty: lp of their length, t + 1. Nothing waits for the device. The object it is called on must not be used
        again.
        """
        slot = torch.where(is_finished, self.count[:, None] + is_finished.cumsum(1) - 1, self.lengths.size(1) - 1)
        self.tokens[..., : prefixes.size(2)].scatter_(1, slot[..., None].expand_as(prefixes), prefixes)
        self.lengths.scatter_(1, slot, prefixes.size(2) + 1)
        self.log_p.scatter_(1, slot, log_p)
        scores = (log_p / penalty).masked_fill(~is_finished, NEVER)
        if self.best.size(1) == 1:
            best = torch.maximum(self.best, scores.amax(dim=1, keepdim=True))
        else:
            best = torch.cat([self.best, scores], dim=1).topk(self.best.size(1), dim=1).values
        return type(self)(self.tokens, self.lengths, self.log_p, self.count + is_finished.sum(dim=1), best)

    def select(self, rows: Tensor) -> Self:
        """Return the hypotheses of the sentences numbered `rows` (B',)."""
        parts = (self.tokens, self.lengths, self.log_p, self.count, self.best)
        return type(self)(*(part.index_select(0, rows) for part in parts))


class BestFinished(NamedTuple):
    """The k finished hypotheses with the highest scores, where more of them finish than a beam has slots for.

    tokens (B, k, L) with `</s>` left out; lengths, without it, log_p and score (B, k); score is -inf where none is.
    """

    tokens: Tensor
    lengths: Tensor
    log_p: Tensor
    score: Tensor

    @classmethod
    def empty(cls, beam_size: int, limits: Tensor) -> Self:
        """Return none. limits: (B,) most tokens of each sentence's translation."""
        zeros = torch.zeros(len(limits), beam_size, dtype=torch.long, device=limits.device)
        log_p = torch.zeros(zeros.shape, device=limits.device)
        return cls(zeros[..., None].repeat(1, 1, int(limits.max())), zeros, log_p, log_p + NEVER)

    def add(self, is_finished: Tensor, candidates: Candidates, tokens: Tensor, score: Tensor) -> Self:
        """Add the candidates that `is_finished` (B, c) marks, with these scores (B, c).

        tokens (B, k, t): of their parents.
        """
        size, length = self.score.size(1), tokens.size(2)
        best = score.masked_fill(~is_finished, NEVER).topk(min(size, score.size(1)), dim=1)
        longer = self.tokens.new_zeros(*best.indices.shape, self.tokens.size(2))
        longer[..., :length] = take(tokens, candidates.parent.gather(1, best.indices))
        log_p = candidates.log_probability.gather(1, best.indices)
        new = (longer, torch.full_like(best.indices, length), log_p, best.values)
        both = [torch.cat(parts, dim=1) for parts in zip(self, new, strict=True)]
        kept = both[3].topk(size, dim=1).indices
        return type(self)(*(take(part, kept) for part in both))

    def select(self, rows: Tensor) -> Self:
        """Return the hypotheses of the sentences numbered `rows` (B',)."""
        return type(self)(*(part[rows] for part in self))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return those of each sentence, best first."""
        return [
            [
                Hypothesis(ids[:length], log_p, score, finished=True)
                for ids, length, log_p, score in zip(*parts, strict=True)
                if score > NEVER
            ]
            for parts in zip(*(part.tolist() for part in self), strict=True)
        ]


@dataclass(frozen=True)
class Extended:
    """What a beam's candidates become.

    prefixes (B, c, t): of all candidates. is_finished (B, c): those that end in `</s>` and count as finished. chosen
    (B, k): which candidates stay active, in order. rank (B, k): what they were chosen by. token (B, k); tokens
    (B, k, t + 1).
    """

    prefixes: Tensor
    is_finished: Tensor
    chosen: Tensor
    rank: Tensor
    token: Tensor
    tokens: Tensor


def extend(tokens: Tensor, candidates: Candidates, beam_size: int) -> Extended:
    """Divide the candidates of hypotheses with tokens (B, k, t) into finished and active ones.

    A hypothesis finishes only among the k best; the k best that do not end in `</s>` stay active.
    """
    prefixes = take(tokens, candidates.parent)
    is_end = candidates.token == EOS
    is_finished = is_end & (candidates.log_probability > NEVER)
    is_finished[:, beam_size:] = False
    best = candidates.log_probability.masked_fill(is_end, NEVER).topk(min(beam_size, is_end.size(1)), dim=1)
    token = candidates.token.gather(1, best.indices)
    longer = torch.cat([take(prefixes, best.indices), token[..., None]], dim=2)
    return Extended(prefixes, is_finished, best.indices, best.values, token, longer)


def results_of(
    finished: Finished, tokens: Tensor, log_p: Tensor, step: int, penalty: Callable[[float], float]
) -> list[list[Hypothesis]]:
    """Return the finished hypotheses of each sentence, best first; those still active where none has finished.

    tokens (B, k, step), log_p (B, k): the active ones, of which those with log_p -inf do not count. penalty: lp of a
    length.
    """

    def hypothesis(ids: list[int], value: float, length: int, is_finished: bool) -> Hypothesis:
        return Hypothesis(ids, value, value / penalty(length), is_finished)

    counts, lengths, values = finished.count.tolist(), finished.lengths.tolist(), finished.log_p.tolist()
    ids, results = finished.tokens.tolist(), []
    for row, count in enumerate(counts):
        if count:
            pool = [
                hypothesis(ids[row][slot][: length - 1], values[row][slot], length, True)
                for slot, length in enumerate(lengths[row][:count])
            ]
        else:
            active = zip(tokens[row].tolist(), log_p[row].tolist(), strict=True)
            pool = [hypothesis(unfinished, value, step, False) for unfinished, value in active if value > NEVER]
        results.append(sorted(pool, key=lambda each: -each.score))
    return results


def take(values: Tensor, indices: Tensor) -> Tensor:
    """values (B, n) or (B, n, t), indices (B, m) below n -> (B, m) or (B, m, t)."""
    if values.dim() == 2:
        return values.gather(1, indices)
    return values.gather(1, indices[..., None].expand(-1, -1, values.size(2)))
