"""Beam search with a length penalty.

Shapes: B active sentences, k beam size, c = 2k candidates a sentence, t tokens so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.search.base import SEARCHES, Search, SearchConfig, active_rows, first_tokens, most_likely
from tolka.search.hypothesis import Hypothesis, Wish

_MAX_BEAM_SIZE, _MAX_LENGTH_PENALTY = 10**6, 20.0  # beyond, memory or floats overflow
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
        at_most(self, "search", _MAX_BEAM_SIZE, "beam_size")
        zero_or_more(self, "search", "off", "length_penalty")
        at_most(self, "search", _MAX_LENGTH_PENALTY, "length_penalty")

    @property
    def width(self) -> int:
        return self.beam_size

    def penalty(self, length: float) -> float:
        """Return lp(Y) = ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7); |Y| includes `</s>`."""
        return float(((5.0 + length) / 6.0) ** self.length_penalty)

    def build(self) -> "BeamSearch":
        return BeamSearch(self)


class BeamSearch(Search):
    """Extend the beam_size most likely hypotheses of each sentence, token by token."""

    def __init__(self, config: BeamConfig) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        A sentence is finished when beam_size hypotheses are, or when no active one can still beat the best finished
        one: its log-probability only falls, so log p / lp(limit) bounds every score it can reach.
        """
        beam = _Beam(self.config, model, source, lengths)
        while len(beam.active):
            beam.advance()
        return beam.results


@dataclass(frozen=True)
class _Finished:
    """The finished hypotheses, in slots; the last slot is written to and never read.

    tokens (B, slots, L) with `</s>` left out; lengths (B, slots), `</s>` counted; log_p (B, slots); count (B,); best
    (B,): the highest score among them.
    """

    tokens: Tensor
    lengths: Tensor
    log_p: Tensor
    count: Tensor
    best: Tensor

    @classmethod
    def empty(cls, sentences: int, slots: int, longest: int, device: torch.device) -> Self:
        zeros = torch.zeros(sentences, slots + 1, dtype=torch.long, device=device)
        tokens = zeros[..., None].repeat(1, 1, longest)
        log_p = torch.zeros(sentences, slots + 1, device=device)
        return cls(tokens, zeros, log_p, zeros[:, 0].clone(), torch.full_like(log_p[:, 0], _NEVER))

    def add(self, is_finished: Tensor, prefixes: Tensor, log_p: Tensor, penalty: float) -> Self:
        """Add the candidates that `is_finished` (B, c) marks, with prefixes (B, c, t) and log_p (B, c).

        penalty: lp of their length, t + 1. Nothing waits for the device. The object it is called on must not be used
        again.
        """
        slot = torch.where(is_finished, self.count[:, None] + is_finished.cumsum(1) - 1, self.lengths.size(1) - 1)
        self.tokens[..., : prefixes.size(2)].scatter_(1, slot[..., None].expand_as(prefixes), prefixes)
        self.lengths.scatter_(1, slot, prefixes.size(2) + 1)
        self.log_p.scatter_(1, slot, log_p)
        best = torch.maximum(self.best, (log_p / penalty).masked_fill(~is_finished, _NEVER).amax(dim=1))
        return type(self)(self.tokens, self.lengths, self.log_p, self.count + is_finished.sum(dim=1), best)

    def select(self, rows: Tensor) -> Self:
        """Return the hypotheses of the sentences numbered `rows` (B',)."""
        parts = (self.tokens, self.lengths, self.log_p, self.count, self.best)
        return type(self)(*(part.index_select(0, rows) for part in parts))


class _Beam:
    """State of the search: k active hypotheses for each active sentence, and the results of finished sentences."""

    def __init__(self, config: BeamConfig, model: Seq2Seq, source: Tensor, lengths: Tensor) -> None:
        self.config = config
        self.model = model
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = ((5.0 + self.limits) / 6.0) ** config.length_penalty  # `penalty`, of all at once
        # In the step in which the k-th hypothesis finishes, up to k do.
        self.finished = _Finished.empty(len(source), 2 * config.beam_size, int(self.limits.max()), source.device)
        self.results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove finished sentences from the batch."""
        beam_size = self.config.beam_size
        features, self.state = self.model.step(self.token, self.state)
        # 2k candidates: at most k of them end in </s>, so that at least k do not.
        candidates = most_likely(self.model, features, self.total, 2 * beam_size)
        self.step += 1
        prefixes = _select(self.tokens, candidates.parent)  # (B, c, t)
        is_end = candidates.token == EOS
        is_finished = is_end & (candidates.log_probability > _NEVER)
        is_finished[:, beam_size:] = False  # a hypothesis finishes only among the k best
        penalty = self.config.penalty(self.step)
        self.finished = self.finished.add(is_finished, prefixes, candidates.log_probability, penalty)

        # The k best that do not end in </s>, in order.
        best = candidates.log_probability.masked_fill(is_end, _NEVER).topk(min(beam_size, is_end.size(1)), dim=1)
        total, token = best.values, candidates.token.gather(1, best.indices)  # (B, k)
        tokens = torch.cat([_select(prefixes, best.indices), token[..., None]], dim=2)  # (B, k, t + 1)
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + candidates.parent.gather(1, best.indices)  # of the state's hypotheses

        finished = self._is_finished(total[:, 0])
        if bool(finished.any()):
            self._collect_results(finished, tokens, total)
            left = active_rows(~finished)
            self.finished = self.finished.select(left)
            total, token, tokens, rows = total[left], token[left], tokens[left], rows[left]
            self.active, self.limits, self.last_penalty = self.active[left], self.limits[left], self.last_penalty[left]
        self.total, self.token, self.tokens = total, token, tokens
        if len(self.active):
            self.state = self.state.select(rows)

    def _is_finished(self, best_active: Tensor) -> Tensor:
        """Return (B,): whether no active hypothesis can change a sentence's result. best_active: (B,) log p."""
        full = (self.limits <= self.step) | (self.finished.count >= self.config.beam_size)
        return full | (best_active == _NEVER) | (best_active / self.last_penalty <= self.finished.best)

    def _collect_results(self, is_finished: Tensor, tokens: Tensor, total: Tensor) -> None:
        """Set the results of the sentences that `is_finished` (B,) marks.

        tokens (B, k, t + 1), total (B, k): the active hypotheses, which are the result if none has finished.
        """
        rows = is_finished.nonzero()[:, 0]
        finished = self.finished.select(rows)
        counts, lengths, log_p = finished.count.tolist(), finished.lengths.tolist(), finished.log_p.tolist()
        numbers, ids = self.active[rows].tolist(), finished.tokens.tolist()
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


def _select(tokens: Tensor, indices: Tensor) -> Tensor:
    """tokens (B, n, t), indices (B, m) below n -> (B, m, t)."""
    return tokens.gather(1, indices[..., None].expand(-1, -1, tokens.size(2)))
