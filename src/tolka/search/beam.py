"""Beam search with a length penalty, in one group of hypotheses or in several that are kept apart.

Shapes: B active sentences, k beam size, G groups, w = k / G hypotheses of a group, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import (
    NEVER,
    Search,
    active_rows,
    extensions,
    first_tokens,
    next_log_probabilities,
)
from tolka.search.constraints.constrained import search_with_terms
from tolka.search.constraints.rules import Rules
from tolka.search.finished import Extended, Finished, extend, results_of
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options.beam import BeamConfig as BeamConfig
from tolka.search.options.beam import BeamOptions


class BeamSearch(Search):
    """Extend the beam_size most likely hypotheses of each sentence, token by token.

    Several groups are diverse beam search (Vijayakumar et al. 2018): they are extended one after the other in each
    step, and each avoids the tokens of those before it.
    """

    def __init__(self, config: BeamOptions) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        Those of several groups come in the order in which they are chosen, none twice: the groups' best ones, then
        their second ones and so on; of those of one rank, the best come first.
        """
        if any(wish.terms for wish in wishes):
            return search_with_terms(self.config, model, source, lengths, wishes, self._search_without_terms)
        return self._search_without_terms(model, source, lengths, wishes)

    def _search_without_terms(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> list[list[Hypothesis]]:
        beam = _Beam(self.config, model, source, lengths, wishes)
        while len(beam.active):
            beam.advance()
        if len(beam.results) == 1:
            return beam.results[0]
        return [_best_of_groups(pools) for pools in zip(*beam.results, strict=True)]


def _best_of_groups(pools: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """Return the distinct hypotheses of the groups' pools, by rank and then by score."""
    ranked = [(rank, -each.score, each) for pool in pools for rank, each in enumerate(pool)]
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for _, _, each in sorted(ranked, key=lambda item: item[:2]):
        chosen.setdefault(tuple(each.tokens), each)
    return list(chosen.values())


class _Beam:
    """State of the search: w active hypotheses in each group of each active sentence, and each group's results."""

    def __init__(
        self, config: BeamOptions, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> None:
        self.config = config
        self.model = model
        self.rules = Rules(config, lengths, wishes)
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.totals = [torch.zeros(len(source), 1, device=source.device)] * config.groups  # (B, w) log-probabilities
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = config.penalty(self.limits)
        self.width = config.beam_size // config.groups
        self.finished = [Finished.empty(self.width, config.compared, self.limits) for _ in range(config.groups)]
        self.ended = torch.zeros(len(source), config.groups, dtype=torch.bool, device=source.device)
        self.results: list[list[list[Hypothesis]]] = [[[] for _ in range(len(source))] for _ in range(config.groups)]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove sentences of which all groups have ended."""
        features, self.state = self.model.step(self.token, self.state)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        self.step += 1
        groups, before = self.config.groups, self.tokens.size(1)
        # (B, V): how often earlier groups took each token in this step.
        taken = torch.zeros_like(log_p[:, 0]) if groups > 1 else None
        extended = []
        for group in range(groups):
            # At first, every group extends the one empty hypothesis.
            part = slice(None) if self.step == 1 else slice(group * before // groups, (group + 1) * before // groups)
            found, parent = self._extend(group, log_p[:, part], self.tokens[:, part], taken)
            extended.append((found.token, found.tokens, parent + (part.start or 0)))
        self.token, self.tokens, parent = (torch.cat(parts, dim=1) for parts in zip(*extended, strict=True))
        sentence = torch.arange(len(self.active), device=self.active.device)[:, None]
        rows = sentence * before + parent  # of the state's hypotheses
        ended = self.ended.all(dim=1)
        if bool(ended.any()):
            left = active_rows(~ended)
            self.totals = [total[left] for total in self.totals]
            self.finished = [finished.select(left) for finished in self.finished]
            parts = (self.token, self.tokens, self.active, self.limits, self.last_penalty, self.ended, rows)
            chosen = (part[left] for part in parts)
            self.token, self.tokens, self.active, self.limits, self.last_penalty, self.ended, rows = chosen
        if len(self.active):
            self.state = self.state.select(rows)

    def _extend(self, group: int, log_p: Tensor, tokens: Tensor, taken: Tensor | None) -> tuple[Extended, Tensor]:
        """Extend one group's hypotheses; return what they become, and the parents (B, w) within the group.

        log_p (B, w, V), tokens (B, w, t). taken (B, V): is increased by what the group takes; None for a single group.
        Diversity (Hamming, section 3) affects which hypotheses a group keeps; log-probabilities and scores are without
        it.
        """
        total = self.totals[group]
        diverse = log_p if taken is None else log_p - self.config.diversity * taken[:, None]
        # 2w candidates: at most w of them end in </s>, so that at least w do not.
        candidates = extensions(diverse, total, 2 * self.width)
        exact = candidates.log_probability
        if taken is not None:
            places = candidates.parent * log_p.size(2) + candidates.token
            exact = log_p.flatten(1).gather(1, places) + total.gather(1, candidates.parent)
        found = extend(tokens, candidates, self.width)
        penalty = self.config.penalty(self.step)
        self.finished[group] = self.finished[group].add(found.is_finished, found.prefixes, exact, penalty)
        self.totals[group] = exact.gather(1, found.chosen).masked_fill(found.rank == NEVER, NEVER)
        if taken is not None:
            taken[:, EOS] += found.is_finished.sum(dim=1)
            taken.scatter_add_(1, found.token, (self.totals[group] > NEVER).to(taken.dtype))
        self._conclude(group, found.tokens)
        return found, candidates.parent.gather(1, found.chosen)

    def _conclude(self, group: int, tokens: Tensor) -> None:
        """Set the results of the sentences for which the group has just ended, and take it out of their beams.

        It ends when as many hypotheses as it holds are finished. A single group also ends when no active hypothesis can
        still beat the finished ones that are wanted: its log-probability only falls, so log p / lp(limit) bounds every
        score it can reach. One of several groups goes on, as what it takes matters to those after it.
        """
        total, finished = self.totals[group], self.finished[group]
        best = total.amax(dim=1)
        has_ended = (self.limits <= self.step) | (finished.count >= self.width) | (best == NEVER)
        if self.config.groups == 1:
            has_ended |= best / self.last_penalty <= finished.best[:, -1]
        newly = (has_ended & ~self.ended[:, group]).nonzero()[:, 0]
        if len(newly):
            found = results_of(finished.select(newly), tokens[newly], total[newly], self.step, self.config.penalty)
            for number, result in zip(self.active[newly].tolist(), found, strict=True):
                self.results[group][number] = result
            self.ended[newly, group] = True
            self.totals[group] = total.masked_fill(self.ended[:, group, None], NEVER)
