"""Diverse beam search (Vijayakumar et al. 2018): groups of hypotheses that are kept apart.

Shapes: B active sentences, G groups, w hypotheses of a group, k = G * w, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import NEVER, Search, active_rows, extensions, first_tokens, next_log_probabilities
from tolka.search.coverage import check_attention, covered
from tolka.search.finished import Extended, Finished, extend, results_of
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.options.diverse import DiverseConfig as DiverseConfig
from tolka.search.rules import Rules


class DiverseSearch(Search):
    """Beam search in groups, one after the other in each step, of which each avoids the tokens of those before it."""

    def __init__(self, config: DiverseConfig) -> None:
        self.config = config

    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence in the order in which they are chosen, none twice.

        They are the groups' best ones, then their second ones and so on; of those of one rank, the best come first.
        Diversity (Hamming, section 3) affects which hypotheses a group keeps; log-probabilities and scores are without
        it. A group ends when as many hypotheses as it holds are finished, however good they are, as what it takes
        matters to the groups after it.
        """
        if self.config.coverage_penalty:
            check_attention(model, source.device)
        beams = _Groups(self.config, model, source, lengths, wishes)
        while len(beams.active):
            beams.advance()
        results = beams.results
        if self.config.coverage_penalty:
            results = [covered(model, source, pools, self.config.coverage_penalty) for pools in results]
        return [_best_of_groups(pools) for pools in zip(*results, strict=True)]


def _best_of_groups(pools: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """Return the distinct hypotheses of the groups' pools, by rank and then by score."""
    ranked = [(rank, -each.score, each) for pool in pools for rank, each in enumerate(pool)]
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for _, _, each in sorted(ranked, key=lambda item: item[:2]):
        chosen.setdefault(tuple(each.tokens), each)
    return list(chosen.values())


class _Groups:
    """State of the search: w active hypotheses in each group of each active sentence, and each group's results."""

    def __init__(
        self, config: DiverseConfig, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
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
        size = config.beam_size // config.groups
        self.finished = [Finished.empty(size, 1, self.limits) for _ in range(config.groups)]
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
        counts = torch.zeros_like(log_p[:, 0])  # (B, V): how often earlier groups took each token in this step
        token, tokens, parents = [], [], []
        for group in range(self.config.groups):
            part = slice(None)  # at first, every group extends the one empty hypothesis
            if self.step > 1:
                width = self.tokens.size(1) // self.config.groups
                part = slice(group * width, (group + 1) * width)
            found, parent = self._extend(group, log_p[:, part], self.tokens[:, part], counts)
            token.append(found.token)
            tokens.append(found.tokens)
            parents.append(parent + (part.start or 0))
        sentence = torch.arange(len(self.active), device=self.active.device)[:, None]
        rows = sentence * self.tokens.size(1) + torch.cat(parents, dim=1)  # of the state's hypotheses
        self.token, self.tokens = torch.cat(token, dim=1), torch.cat(tokens, dim=1)
        if bool(self.ended.all(dim=1).any()):
            left = active_rows(~self.ended.all(dim=1))
            self.totals = [total[left] for total in self.totals]
            self.finished = [finished.select(left) for finished in self.finished]
            chosen = (self.token, self.tokens, self.active, self.limits, self.ended, rows)
            self.token, self.tokens, self.active, self.limits, self.ended, rows = (each[left] for each in chosen)
        if len(self.active):
            self.state = self.state.select(rows)

    def _extend(self, group: int, log_p: Tensor, tokens: Tensor, counts: Tensor) -> tuple[Extended, Tensor]:
        """Extend one group's hypotheses; return what they become, and the parents (B, w) within the group.

        log_p (B, w, V), tokens (B, w, t). counts (B, V): is increased by what the group takes.
        """
        total = self.totals[group]
        size = self.config.beam_size // self.config.groups
        candidates = extensions(log_p - self.config.diversity * counts[:, None], total, 2 * size)
        places = candidates.parent * log_p.size(2) + candidates.token
        exact = log_p.flatten(1).gather(1, places) + total.gather(1, candidates.parent)  # without diversity
        found = extend(tokens, candidates, size)
        penalty = self.config.penalty(self.step)
        self.finished[group] = self.finished[group].add(found.is_finished, found.prefixes, exact, penalty)
        self.totals[group] = exact.gather(1, found.chosen).masked_fill(found.rank == NEVER, NEVER)
        counts[:, EOS] += found.is_finished.sum(dim=1)
        counts.scatter_add_(1, found.token, (self.totals[group] > NEVER).to(counts.dtype))
        self._conclude(group, found.tokens)
        return found, candidates.parent.gather(1, found.chosen)

    def _conclude(self, group: int, tokens: Tensor) -> None:
        """Set the results of the sentences for which the group has just ended, and take it out of their beams."""
        total, finished = self.totals[group], self.finished[group]
        size = self.config.beam_size // self.config.groups
        has_ended = (self.limits <= self.step) | (finished.count >= size) | (total == NEVER).all(dim=1)
        newly = (has_ended & ~self.ended[:, group]).nonzero()[:, 0]
        if len(newly):
            found = results_of(finished.select(newly), tokens[newly], total[newly], self.step, self.config.penalty)
            for number, result in zip(self.active[newly].tolist(), found, strict=True):
                self.results[group][number] = result
            self.ended[newly, group] = True
            self.totals[group] = total.masked_fill(self.ended[:, group, None], NEVER)
