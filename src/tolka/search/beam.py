"""Beam search with a length penalty.

Shapes: B active sentences, k beam size, c = 2k candidates a sentence, t tokens so far.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tolka.models.base import Seq2Seq
from tolka.search.base import (
    NEVER,
    Search,
    active_rows,
    extensions,
    first_tokens,
    next_log_probabilities,
)
from tolka.search.constrained import search_with_terms
from tolka.search.coverage import check_attention, covered
from tolka.search.finished import Finished, extend, results_of
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options.beam import BeamConfig as BeamConfig
from tolka.search.rules import Rules


class BeamSearch(Search):
    """Extend the beam_size most likely hypotheses of each sentence, token by token."""

    def __init__(self, config: BeamConfig) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        A sentence is finished when beam_size hypotheses are or, if the best one alone is wanted, when no active one can
        still beat it: its log-probability only falls, so log p / lp(limit) bounds every score it can reach. With a
        coverage penalty, which is known of finished hypotheses only, beam_size of them are compared.
        """
        if self.config.coverage_penalty:
            check_attention(model, source.device)
        if any(wish.terms for wish in wishes):
            results = search_with_terms(
                self.config, self.config.bonus, model, source, lengths, wishes, self._search_without_terms
            )
        else:
            results = self._search_without_terms(model, source, lengths, wishes)
        if self.config.coverage_penalty:
            return covered(model, source, results, self.config.coverage_penalty)
        return results

    def _search_without_terms(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, best first."""
        beam = _Beam(self.config, model, source, lengths, wishes)
        while len(beam.active):
            beam.advance()
        return beam.results


class _Beam:
    """State of the search: k active hypotheses for each active sentence, and the results of finished sentences."""

    def __init__(
        self, config: BeamConfig, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> None:
        self.config = config
        self.model = model
        self.rules = Rules(config, lengths, wishes)
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = config.penalty(self.limits)
        self.finished = Finished.empty(config.beam_size, config.compared, self.limits)
        self.results: list[list[Hypothesis]] = [[] for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove finished sentences from the batch."""
        beam_size = self.config.beam_size
        features, self.state = self.model.step(self.token, self.state)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        # 2k candidates: at most k of them end in </s>, so that at least k do not.
        candidates = extensions(log_p, self.total, 2 * beam_size)
        self.step += 1
        found = extend(self.tokens, candidates, beam_size)
        penalty = self.config.penalty(self.step)
        self.finished = self.finished.add(found.is_finished, found.prefixes, candidates.log_probability, penalty)

        total, token, tokens = found.rank, found.token, found.tokens
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + candidates.parent.gather(1, found.chosen)  # of the state's hypotheses

        finished = self._is_finished(total[:, 0])
        if bool(finished.any()):
            done = finished.nonzero()[:, 0]
            results = results_of(self.finished.select(done), tokens[done], total[done], self.step, self.config.penalty)
            for number, result in zip(self.active[done].tolist(), results, strict=True):
                self.results[number] = result
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
        return full | (best_active == NEVER) | (best_active / self.last_penalty <= self.finished.best[:, -1])
