"""Beam search with a length penalty, in one group of hypotheses or in several that are kept apart.

Shapes: B active sentences, k beam size, G groups, w = k / G hypotheses of a group, V vocabulary, t tokens so far; c
candidates a sentence, n finished hypotheses at most, L tokens of the longest hypothesis.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.data.batch import EOS
from tolka.kernels.ending import are_surely_none, are_worth_removing, by_ending, on_host
from tolka.models.base import Seq2Seq
from tolka.search.base import NEVER, Search, extensions, first_tokens, next_log_probabilities, take
from tolka.search.constraints.rules import Rules
from tolka.search.constraints.terms import Result, Terms, search_until_met
from tolka.search.hypothesis import Hypothesis, Wishes
from tolka.search.options import BeamConfig as BeamConfig
from tolka.search.options import BeamOptions


class BeamSearch(Search):
    """Extend the beam_size most likely hypotheses of each sentence, token by token.

    Several groups are diverse beam search (Vijayakumar et al. 2018): they are extended one after the other in each
    step, and each avoids the tokens of those before it.
    """

    def __init__(self, config: BeamOptions) -> None:
        self.config = config

    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Wishes = ()) -> list[list[Hypothesis]]:
        """Return the finished hypotheses of each sentence, about beam_size of them, best first.

        Those of several groups come in the order in which they are chosen, none twice: the groups' best ones, then
        their second ones and so on; of those of one rank, the best come first.
        """
        if not any(wish.terms for wish in wishes):
            return [each.hypotheses for each in self._results(model, source, lengths, wishes)]

        def search(numbers: Sequence[int], some: Wishes) -> list[Result]:
            rows = torch.tensor(numbers, device=source.device)
            return self._results(model, source[rows, : int(lengths[rows].max())], lengths[rows], some)

        return search_until_met(wishes, self.config.limits(lengths).tolist(), search)

    def _results(self, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Wishes) -> list[Result]:
        beam = _Beam(self.config, model, source, lengths, wishes)
        while len(beam.active):
            beam.advance()
        if len(beam.results) == 1:
            return beam.results[0]
        # Results are by group and sentence, and wanted by sentence.
        return [
            Result(_best_of_groups([each.hypotheses for each in pools])) for pools in zip(*beam.results, strict=True)
        ]


def _best_of_groups(pools: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """Return the distinct hypotheses of the groups' pools, by rank and then by score."""
    ranked = [(rank, -each.score, each) for pool in pools for rank, each in enumerate(pool)]
    chosen: dict[tuple[int, ...], Hypothesis] = {}
    for _, _, each in sorted(ranked, key=lambda item: item[:2]):
        # Diversity does not keep groups from finding the same translation in the end.
        chosen.setdefault(tuple(each.tokens), each)
    return list(chosen.values())


class _Finished(NamedTuple):
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


class _Beam:
    """State of the search: w active hypotheses in each group of each active sentence, and each group's results."""

    def __init__(self, config: BeamOptions, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Wishes) -> None:
        self.config = config
        self.model = model
        self.rules = Rules(config, lengths, wishes)
        has_terms = any(wish.terms for wish in wishes)
        self.terms = Terms(wishes, model.vocabulary_size, source.device) if has_terms else None
        self.state = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.totals = [torch.zeros(len(source), 1, device=source.device)] * config.groups  # (B, w) log-probabilities
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = config.penalty(self.limits)  # (B,): lp is never larger
        self.width = config.beam_size // config.groups
        self.finished = [_Finished.empty(config.enough, self.limits) for _ in range(config.groups)]
        self.ended = torch.zeros(len(source), config.groups, dtype=torch.bool, device=source.device)
        # Of each group, in which sentences (B,) it has ended in this step without a finished hypothesis.
        self.lacking: list[Tensor] = []
        # What `_unfinished` takes, with the sentences' numbers, of each group and step in which there were some.
        self.unfinished: list[tuple[int, list[Tensor]]] = []
        self.results = [[Result([]) for _ in range(len(source))] for _ in range(config.groups)]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove sentences of which all groups have ended."""
        features, self.state = self.model.step(self.token, self.state)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        self.step, self.lacking = self.step + 1, []
        groups, before = self.config.groups, self.tokens.size(1)
        token_counts = torch.zeros_like(log_p[:, 0]) if groups > 1 else None
        extended = []
        for group in range(groups):
            # At first every group extends the one empty hypothesis: k equal ones would fill the beam with k copies.
            part = slice(None) if self.step == 1 else slice(group * before // groups, (group + 1) * before // groups)
            token, tokens, parent = self._extend(group, log_p[:, part], self.tokens[:, part], token_counts)
            extended.append((token, tokens, parent + (part.start or 0)))
        self.token, self.tokens, parent = (torch.cat(each, dim=1) for each in zip(*extended, strict=True))
        sentence = torch.arange(len(self.active), device=self.active.device)[:, None]
        rows = sentence * before + parent  # of the state's hypotheses
        # The one place in most steps that waits for the device.
        ended = self.ended.all(dim=1)
        ended_count, *lacking = torch.stack([ended.sum(), *(each.sum() for each in self.lacking)]).tolist()
        for group in range(groups):
            if lacking[group]:
                self._keep_unfinished(group, lacking[group])
        # A group's rows stay until all groups of the sentence have ended, but can never be chosen again.
        self.totals = [total.masked_fill(self.ended[:, i, None], NEVER) for i, total in enumerate(self.totals)]
        # Sentences that have ended leave the batch, so that the last, longest ones are decoded alone.
        if are_worth_removing(ended_count, len(self.active), self.active.device):
            left, gone = by_ending(ended, ended_count)
            self._take_results(gone)
            self.totals = [total[left] for total in self.totals]
            self.finished = [finished.select(left) for finished in self.finished]
            if self.terms:
                self.terms.select(left)
            tensors = (self.token, self.tokens, self.active, self.limits, self.last_penalty, self.ended, rows)
            chosen = (each[left] for each in tensors)
            self.token, self.tokens, self.active, self.limits, self.last_penalty, self.ended, rows = chosen
        if len(self.active):
            self.state = self.state.select(rows)

    def _extend(
        self, group: int, log_p: Tensor, tokens: Tensor, token_counts: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Extend one group's hypotheses; return token (B, w), tokens (B, w, t + 1) and the parents (B, w) in the group.

        log_p (B, w, V), tokens (B, w, t). token_counts (B, V): how often earlier groups took each token in this step;
        this one's are added. None for a single group.
        """
        total = self.totals[group]
        # Diversity (Hamming, section 3) decides which hypotheses a group keeps, and changes none of their scores.
        diverse = log_p if token_counts is None else log_p - self.config.diversity * token_counts[:, None]
        if self.terms:
            candidates, place, rank = self.terms.candidates(log_p, total, self.width)
        else:
            # 2w candidates: at most w of them end in </s>, so that at least w do not.
            candidates = extensions(diverse, total, 2 * self.width)
            place, rank = torch.arange(candidates.token.size(1), device=total.device), candidates.log_probability
        exact = candidates.log_probability
        if token_counts is not None:
            # Once more without the penalty on repeated tokens: (B, w, V) flattened, at the candidates.
            places = candidates.parent * log_p.size(2) + candidates.token
            exact = log_p.flatten(1).gather(1, places) + total.gather(1, candidates.parent)
        prefixes, is_end = take(tokens, candidates.parent), candidates.token == EOS
        # A hypothesis finishes only among the w best, where any other would stay in the beam.
        is_finished = is_end & (candidates.log_probability > NEVER) & (place < self.width)
        self.finished[group] = self.finished[group].add(is_finished, prefixes, exact, self.config.penalty(self.step))
        # The w best that continue take the places in the beam; the finished ones cost it none. With fewer than w
        # candidates, or under rules, some are impossible: their sums stay -inf from here on.
        active = rank.masked_fill(is_end, NEVER).topk(min(self.width, is_end.size(1)), dim=1)
        token = candidates.token.gather(1, active.indices)
        longer = torch.cat([take(prefixes, active.indices), token[..., None]], dim=2)
        self.totals[group] = exact.gather(1, active.indices).masked_fill(active.values == NEVER, NEVER)
        if self.terms:
            self.terms.keep(active.indices)
        if token_counts is not None:
            token_counts[:, EOS] += is_finished.sum(dim=1)
            token_counts.scatter_add_(1, token, (self.totals[group] > NEVER).to(token_counts.dtype))
        self._conclude(group)
        return token, longer, candidates.parent.gather(1, active.indices)

    def _conclude(self, group: int) -> None:
        """Find the sentences for which the group has just ended."""
        total, scores = self.totals[group], self.finished[group].scores
        best = total.amax(dim=1)
        # At the length limit, or with none left that can continue.
        has_ended = (self.limits <= self.step) | (best == NEVER)
        if self.terms:
            # With as many finished hypotheses as active ones, all of which are better than any active one with its
            # length so far: many poor ones finish early in a bank with few hypotheses.
            has_ended |= best / self.config.penalty(self.step) <= scores[:, self.width - 1]
        else:
            has_ended |= scores[:, self.config.enough - 1] > NEVER
        if self.config.groups == 1:
            # Or when no active one can still beat the finished ones that are wanted: log p only falls and lp only
            # rises, so that log p / lp(limit) bounds every score that can be reached. One of several groups continues,
            # as the tokens that it takes matter to the groups after it.
            has_ended |= best / self.last_penalty <= scores[:, self.config.compared - 1]
        self.lacking.append(has_ended & ~self.ended[:, group] & (scores[:, 0] == NEVER))
        self.ended[:, group] |= has_ended

    def _keep_unfinished(self, group: int, count: int) -> None:
        """Keep the active hypotheses of the `count` sentences in which the group ended now, and finished none."""
        tokens, total = self.tokens.chunk(self.config.groups, 1)[group], self.totals[group]
        missing = self.terms.missing if self.terms else tokens.new_empty(*total.shape, 0)
        _, rows = by_ending(self.lacking[group], count)
        self.unfinished.append((group, [each[rows] for each in (self.active, tokens, total, missing)]))

    def _take_results(self, rows: Tensor) -> None:
        """Set the results of sentences that have ended, which have these numbers among the active ones."""
        pools = [finished.select(rows) for finished in self.finished]
        groups = [[self.active[rows]], *pools, *(kept for _, kept in self.unfinished)]
        found = iter(on_host(*chain.from_iterable(groups)))
        numbers = next(found).tolist()
        for results, pool in zip(self.results, pools, strict=True):
            hypotheses = _Finished(*islice(found, len(pool))).hypotheses(self.config.penalty)
            for number, of_sentence in zip(numbers, hypotheses, strict=True):
                if of_sentence:
                    results[number] = Result(_best_first(of_sentence))
        for group, kept in self.unfinished:
            for number, *active in zip(*(each.tolist() for each in islice(found, len(kept))), strict=True):
                self.results[group][number] = self._unfinished(*active)
        self.unfinished = []

    def _unfinished(self, tokens: list[list[int]], log_p: list[float], missing: list[list[bool]]) -> Result:
        """Return a sentence's active hypotheses, the result where none has finished.

        Where all of them lack terms: the terms that the one lacks which has most. missing: by hypothesis and term.
        """
        penalty = self.config.penalty(len(tokens[0]))
        possible = [each for each in zip(tokens, log_p, missing, strict=True) if each[1] > NEVER]
        if not possible:
            return Result([], range(len(missing[0])))
        _, _, lacking = min(possible, key=lambda each: (sum(each[2]), -each[1]))
        if any(lacking):
            return Result([], [term for term, is_missing in enumerate(lacking) if is_missing])
        whole = ((ids, value) for ids, value, lacks in possible if not any(lacks))
        return Result(_best_first(Hypothesis(ids, value, value / penalty, finished=False) for ids, value in whole))


def _best_first(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda each: -each.score)
