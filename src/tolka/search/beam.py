"""Beam search with a length penalty.

Shapes: B sentences still at work, k beam size, c = 2k candidates a sentence, t tokens so far.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.search.base import SEARCHES, Hypothesis, SearchConfig, compacted, first_tokens, most_likely

_WIDEST, _STRONGEST = 10**6, 20.0  # beam_size, length_penalty: beyond, numbers no longer fit
_NEVER = float("-inf")


@SEARCHES.register("beam")
@dataclass(frozen=True)
class BeamConfig(SearchConfig):
    """Options of beam search."""

    name: str = "beam"
    """the kind of search: beam"""
    beam_size: int = 5
    """hypotheses kept for each sentence"""
    length_penalty: float = 1.0
    """a of ((5 + length) / 6) ** a, which log-probabilities are divided by; 0 = off, more = longer translations"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 1, "beam_size")
        at_most(self, "search", _WIDEST, "beam_size")
        zero_or_more(self, "search", "off", "length_penalty")
        at_most(self, "search", _STRONGEST, "length_penalty")

    @property
    def width(self) -> int:
        """Number of hypotheses per sentence."""
        return self.beam_size

    def penalty(self, length: float) -> float:
        """Return lp(Y) = ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7); |Y| includes `</s>`."""
        return float(((5.0 + length) / 6.0) ** self.length_penalty)

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        A sentence is finished when beam_size hypotheses have ended, or when no active one can still beat the best that
        has: its log-probability only falls, so log p / lp(limit) bounds every score it can reach.
        """
        work = _Beam(self, model, source, lengths)
        while len(work.alive):
            work.advance()
        return work.results


@dataclass(frozen=True)
class _Ended:
    """The finished hypotheses, in slots; the last slot takes what is dropped.

    tokens (B, slots, L) with `</s>` left out; lengths (B, slots), `</s>` counted; log_p (B, slots); count (B,); best
    (B,): the highest score among them.
    """

    tokens: Tensor
    lengths: Tensor
    log_p: Tensor
    count: Tensor
    best: Tensor

    @classmethod
    def none(cls, sentences: int, slots: int, longest: int, device: torch.device) -> Self:
        """Return an empty one."""
        zeros = torch.zeros(sentences, slots + 1, dtype=torch.long, device=device)
        tokens = zeros[..., None].repeat(1, 1, longest)
        log_p = torch.zeros(sentences, slots + 1, device=device)
        return cls(tokens, zeros, log_p, zeros[:, 0].clone(), torch.full_like(log_p[:, 0], _NEVER))

    def add(self, ends: Tensor, prefixes: Tensor, log_p: Tensor, penalty: float) -> Self:
        """Add the candidates that `ends` (B, c) marks, with prefixes (B, c, t) and log_p (B, c).

        penalty: lp of their length, t + 1. Nothing waits for the device. The object it is called on is used up.
        """
        slot = torch.where(ends, self.count[:, None] + ends.cumsum(1) - 1, self.lengths.size(1) - 1)
        self.tokens[..., : prefixes.size(2)].scatter_(1, slot[..., None].expand_as(prefixes), prefixes)
        self.lengths.scatter_(1, slot, prefixes.size(2) + 1)
        self.log_p.scatter_(1, slot, log_p)
        best = torch.maximum(self.best, (log_p / penalty).masked_fill(~ends, _NEVER).amax(dim=1))
        return type(self)(self.tokens, self.lengths, self.log_p, self.count + ends.sum(dim=1), best)

    def select(self, rows: Tensor) -> Self:
        """Return those of the sentences numbered (B',)."""
        parts = (self.tokens, self.lengths, self.log_p, self.count, self.best)
        return type(self)(*(part.index_select(0, rows) for part in parts))


class _Beam:
    """The search's state: k active hypotheses for each unfinished sentence, and the results of the finished ones."""

    def __init__(self, config: BeamConfig, model: Seq2Seq, source: Tensor, lengths: Tensor) -> None:
        self.config = config
        self.model = model
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k): one hypothesis to begin with
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.alive = torch.arange(len(source), device=source.device)  # (B,): which input each row is
        self.limits = config.limits(lengths)
        self.last_penalty = ((5.0 + self.limits) / 6.0) ** config.length_penalty
        # k end at most in the step in which the k-th does.
        self.ended = _Ended.none(len(source), 2 * config.beam_size, int(self.limits.max()), source.device)
        self.results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every open hypothesis by one token; sentences that are finished leave the batch."""
        beam = self.config.beam_size
        features, self.state = self.model.step(self.token, self.state)
        # 2k candidates: even if each of the k open hypotheses could end, k that go on are among them.
        found = most_likely(self.model, features, self.total, 2 * beam)
        self.step += 1
        prefixes = _rows(self.tokens, found.parent)  # (B, c, t)
        is_end = found.token == EOS
        ends = is_end & (found.log_probability > _NEVER)
        ends[:, beam:] = False  # a hypothesis ends only as one of the k best
        self.ended = self.ended.add(ends, prefixes, found.log_probability, self.config.penalty(self.step))

        # The k best that do not end, in order: </s> is pushed to the back.
        best = found.log_probability.masked_fill(is_end, _NEVER).topk(min(beam, is_end.size(1)), dim=1)
        total, token = best.values, found.token.gather(1, best.indices)  # (B, k)
        tokens = torch.cat([_rows(prefixes, best.indices), token[..., None]], dim=2)  # (B, k, t + 1)
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + found.parent.gather(1, best.indices)  # of the state's hypotheses

        done = self._done(total[:, 0])
        if bool(done.any()):
            self._conclude(done, tokens, total)
            stay = compacted(~done)
            self.ended = self.ended.select(stay)
            total, token, tokens, rows = total[stay], token[stay], tokens[stay], rows[stay]
            self.alive, self.limits, self.last_penalty = self.alive[stay], self.limits[stay], self.last_penalty[stay]
        self.total, self.token, self.tokens = total, token, tokens
        if len(self.alive):
            self.state = self.state.select(rows)

    def _done(self, best_open: Tensor) -> Tensor:
        """Return (B,): whether no active hypothesis can still change a sentence's result, and best_open (B,)."""
        full = (self.limits <= self.step) | (self.ended.count >= self.config.beam_size)
        return full | (best_open == _NEVER) | (best_open / self.last_penalty <= self.ended.best)

    def _conclude(self, done: Tensor, tokens: Tensor, total: Tensor) -> None:
        """Store the results of the sentences that `done` (B,) marks; tokens (B, k, t + 1) and total (B, k) are active.

        At the length limit with nothing finished, what is open is the translation.
        """
        rows = done.nonzero()[:, 0]
        ended = self.ended.select(rows)
        counts, lengths, log_p = ended.count.tolist(), ended.lengths.tolist(), ended.log_p.tolist()
        numbers, ids = self.alive[rows].tolist(), ended.tokens.tolist()
        for place, (row, number) in enumerate(zip(rows.tolist(), numbers, strict=True)):
            if counts[place]:
                pool = [
                    self._hypothesis(ids[place][slot][: length - 1], log_p[place][slot], length, finished=True)
                    for slot, length in enumerate(lengths[place][: counts[place]])
                ]
            else:
                pool = [
                    self._hypothesis(unfinished, value, self.step, finished=False)
                    for unfinished, value in zip(tokens[row].tolist(), total[row].tolist(), strict=True)
                    if value > _NEVER
                ]
            self.results[number] = sorted(pool, key=lambda hypothesis: -hypothesis.score)

    def _hypothesis(self, tokens: list[int], log_p: float, length: int, finished: bool) -> Hypothesis:
        return Hypothesis(tokens, log_p, log_p / self.config.penalty(length), finished)


def _rows(tokens: Tensor, chosen: Tensor) -> Tensor:
    """tokens (B, n, t), chosen (B, m) of the n -> (B, m, t)."""
    return tokens.gather(1, chosen[..., None].expand(-1, -1, tokens.size(2)))
