"""Beam search for translations that contain given terms.

It is dynamic beam allocation (Post and Vilar 2018), for a whole batch at once (Hu et al. 2019). Hypotheses are in banks
by the number of term tokens that they have; every bank gets its share of the beam, and a hypothesis finishes only with
all terms.

Shapes: B active sentences, k beam size, c candidates a sentence, V vocabulary, t tokens so far, T terms a sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.kernels.rows import active_rows
from tolka.models.base import Seq2Seq
from tolka.search.base import NEVER, Candidates, extensions, first_tokens, next_log_probabilities, take
from tolka.search.constraints.rules import Rules
from tolka.search.constraints.term_automaton import TermAutomaton, shortest
from tolka.search.hypothesis import Hypothesis, Ids, Wish
from tolka.search.options import BeamOptions

Plain = Callable[[Seq2Seq, Tensor, Tensor, Sequence[Wish]], list[list[Hypothesis]]]
"""A search without terms: model, source, lengths, wishes -> hypotheses of each sentence."""


def search_with_terms(
    config: BeamOptions,
    model: Seq2Seq,
    source: Tensor,
    lengths: Tensor,
    wishes: Sequence[Wish],
    plain: Plain,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each sentence, best first; sentences without terms are searched apart, by `plain`.

    source (B, S), lengths (B,).
    """
    limits = config.limits(lengths).tolist()
    results: list[list[Hypothesis]] = [[] for _ in wishes]
    wishes, pending = [_possible(wish) for wish in wishes], list(range(len(wishes)))
    # A sentence whose terms are not all met before its length limit is searched again without the longer half of the
    # missing ones, until the others are met.
    while pending:
        with_terms = [number for number in pending if wishes[number].terms]
        if without := [number for number in pending if not wishes[number].terms]:
            pools = plain(model, *_rows(source, lengths, without), [wishes[number] for number in without])
            for number, hypotheses in zip(without, pools, strict=True):
                results[number] = hypotheses
        pending = []
        if with_terms:
            own = [wishes[number] for number in with_terms]
            beam = _TermBeam(config, model, *_rows(source, lengths, with_terms), own)
            while len(beam.active):
                beam.advance()
            for number, result in zip(with_terms, beam.results, strict=True):
                results[number] = result.hypotheses
                if result.missing:
                    wishes[number] = with_fewer(wishes[number], result.missing, limits[number])
                    pending.append(number)
    return results


def _possible(wish: Wish) -> Wish:
    """Return the wish without the alternatives that have a banned phrase in them, unless it stands in the prefix."""
    if not wish.terms or not wish.banned:
        return wish
    # A list may ban thousands of phrases: only those that begin with a token of some alternative can be in one.
    first = {token for alternatives in wish.terms for each in alternatives for token in each}
    banned = {phrase for phrase in wish.banned if phrase and phrase[0] in first and not _has(wish.prefix, phrase)}
    sizes = {len(phrase) for phrase in banned}

    def is_allowed(ids: Ids) -> bool:
        return not any(ids[start : start + n] in banned for n in sizes for start in range(len(ids) - n + 1))

    terms = (tuple(filter(is_allowed, alternatives)) for alternatives in wish.terms)
    # A term without an alternative left could never be met.
    return replace(wish, terms=tuple(filter(None, terms)))


def with_fewer(wish: Wish, missing: Sequence[int], limit: int) -> Wish:
    """Return the wish without the longer half of the missing terms, or as many of them as make the others fit."""
    # At least one is dropped each time, so that the search ends; long terms are the least likely to fit.
    sizes = [shortest(alternatives) for alternatives in wish.terms]
    longest_first, dropped = sorted(missing, key=lambda term: -sizes[term]), (len(missing) + 1) // 2
    while dropped < len(missing) and sum(sizes) - sum(sizes[term] for term in longest_first[:dropped]) >= limit:
        dropped += 1
    left = [term for number, term in enumerate(wish.terms) if number not in longest_first[:dropped]]
    return replace(wish, terms=tuple(left))


def _has(ids: Ids, phrase: Ids) -> bool:
    return any(ids[start : start + len(phrase)] == phrase for start in range(len(ids) - len(phrase) + 1))


def _rows(source: Tensor, lengths: Tensor, numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return some of the sentences, padded to the longest of them."""
    if len(numbers) == len(source):
        return source, lengths
    rows = torch.tensor(numbers, device=source.device)
    return source[rows, : int(lengths[rows].max())], lengths[rows]


class _Result(NamedTuple):
    """Hypotheses of a sentence, and the numbers of the terms that the search could not meet."""

    hypotheses: list[Hypothesis]
    missing: list[int]


class _Ranked(NamedTuple):
    """Candidates (B, c) in the order in which they are chosen."""

    log_probability: Tensor
    parent: Tensor
    token: Tensor
    state: Tensor  # of the TermAutomaton
    missing: Tensor  # (B, c, T)
    place: Tensor  # how many of its bank, which have as many tokens of terms, are better

    def gather(self, indices: Tensor) -> Self:
        """Return those with these numbers (B, n)."""
        return type(self)(*(take(each, indices) for each in self))

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.log_probability, self.parent, self.token)


class _Finished(NamedTuple):
    """The k finished hypotheses with the highest scores."""

    tokens: Tensor  # (B, k, L), `</s>` left out
    lengths: Tensor  # (B, k), without `</s>`
    log_p: Tensor  # (B, k)
    score: Tensor  # (B, k); -inf where there is none

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
        merged = type(self)(*(torch.cat(each, dim=1) for each in zip(self, new, strict=True)))
        best_of_both = merged.score.topk(size, dim=1).indices
        return type(self)(*(take(each, best_of_both) for each in merged))

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


class _TermBeam:
    """State of the search: k active hypotheses for each active sentence, and the results of finished sentences."""

    def __init__(
        self, config: BeamOptions, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> None:
        self.config, self.model = config, model
        self.rules = Rules(config, lengths, wishes)
        self.automaton = TermAutomaton.of([wish.terms for wish in wishes], model.vocabulary_size, source.device)
        self.term_counts = [len(wish.terms) for wish in wishes]
        self.decoder = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.state = self.automaton.start[:, None]  # (B, k)
        self.missing = self.automaton.missing  # (B, k, T)
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = config.limits(lengths)
        self.last_penalty = config.penalty(self.limits)
        self.finished = _Finished.empty(config.beam_size, self.limits)
        self.results = [_Result([], []) for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove finished sentences from the batch."""
        beam_size = self.config.beam_size
        features, self.decoder = self.model.step(self.token, self.decoder)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        # A hypothesis ends only with all terms.
        log_p[..., EOS].masked_fill_(self.missing.any(dim=-1), NEVER)
        self.step += 1
        ranked = self._in_order(self._extensions(log_p))
        is_end = ranked.token == EOS
        is_finished = is_end & (ranked.log_probability > NEVER) & (ranked.place < beam_size)
        if bool(is_finished.any()):
            score = ranked.log_probability / self.config.penalty(self.step)
            self.finished = self.finished.add(is_finished, ranked.candidates, self.tokens, score)

        # Each bank's best one, then each bank's second one and so on, the bank with most tokens of terms first: by
        # log-probability alone, hypotheses without terms, which are more likely, would fill the beam.
        count = ranked.place.size(1)
        turn = ranked.place * count + torch.arange(count, device=is_end.device)
        turn = turn.masked_fill(is_end | (ranked.log_probability == NEVER), count * count)
        chosen = ranked.gather(turn.topk(min(beam_size, count), dim=1, largest=False).indices)
        # Where fewer than k can continue, the rest of the beam are rows that are never chosen again.
        total = chosen.log_probability.masked_fill(chosen.token == EOS, NEVER)
        tokens = torch.cat([take(self.tokens, chosen.parent), chosen.token[..., None]], dim=2)
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + chosen.parent  # of the decoder's hypotheses
        tensors = [total, chosen.token, tokens, rows, chosen.state, chosen.missing]
        has_ended = self._is_finished(total)
        if bool(has_ended.any()):
            self._collect(has_ended.nonzero()[:, 0], tokens, total, chosen.missing)
            left = active_rows(~has_ended)
            self.finished = self.finished.select(left)
            self.automaton = self.automaton.select(left)
            self.active, self.limits, self.last_penalty = self.active[left], self.limits[left], self.last_penalty[left]
            tensors = [each[left] for each in tensors]
        self.total, self.token, self.tokens, rows, self.state, self.missing = tensors
        if len(self.active):
            self.decoder = self.decoder.select(rows)

    def _extensions(self, log_p: Tensor) -> Candidates:
        """Return the candidates, every one once. log_p (B, k, V) is changed."""
        beam_size = self.config.beam_size
        # Each hypothesis with each token that continues a term, and with each that begins one. Both are taken out of
        # log_p, so that none of them is a candidate twice.
        moves = self.automaton.moves(self.state)  # (B, k, M)
        openings = self.automaton.openings[:, None].expand(-1, moves.size(1), -1)  # (B, k, R)
        parts = [(tokens, _removed(log_p, tokens)) for tokens in (moves, openings)]
        # The 2k most likely of the others, of whatever hypothesis.
        likely = extensions(log_p, self.total, 2 * beam_size)
        parent = torch.arange(moves.size(1), device=moves.device)[:, None].expand(len(moves), -1, 1)  # (B, k, 1)
        if moves.size(1) > 1:
            # And each hypothesis with its most likely token, so that no bank dies out.
            value, token = log_p.max(dim=-1, keepdim=True)
            is_likely = (likely.parent[:, None] == parent) & (likely.token[:, None] == token)
            parts.append((token, value.masked_fill(is_likely.any(dim=-1, keepdim=True), NEVER)))
        totals = [likely.log_probability, *((value + self.total[..., None]).flatten(1) for _, value in parts)]
        parents = [likely.parent, *(parent.expand(token.shape).flatten(1) for token, _ in parts)]
        tokens = [likely.token, *(token.flatten(1) for token, _ in parts)]
        return Candidates(torch.cat(totals, dim=1), torch.cat(parents, dim=1), torch.cat(tokens, dim=1))

    def _in_order(self, candidates: Candidates) -> _Ranked:
        """Return the candidates by bank, that with most tokens of terms first, and then by log-probability."""
        log_p, parent, token = candidates.log_probability, candidates.parent, candidates.token
        # A term that is complete once stays met, whatever follows.
        state = self.automaton.next(self.state.gather(1, parent), token)
        missing = take(self.missing, parent) & ~self.automaton.complete[state]
        met = self.automaton.met_tokens(state, missing)
        # By two keys: a stable sort by bank keeps the order by log-probability within each bank.
        order = log_p.argsort(dim=1, descending=True)
        banks = met.gather(1, order).sort(dim=1, descending=True, stable=True)
        order = order.gather(1, banks.indices)
        # A candidate's place in its bank: its position less that of the bank's first.
        position = torch.arange(order.size(1), device=order.device).expand(order.shape)
        is_first = torch.ones_like(order, dtype=torch.bool)
        is_first[:, 1:] = banks.values[:, 1:] != banks.values[:, :-1]
        place = position - torch.where(is_first, position, 0).cummax(dim=1).values
        return _Ranked(log_p, parent, token, state, missing, position).gather(order)._replace(place=place)

    def _is_finished(self, total: Tensor) -> Tensor:
        """Return (B,): whether the search of a sentence ends. total (B, k): of the active hypotheses."""
        best, last = total.amax(dim=1), self.finished.score[:, self.config.compared - 1]
        worst = self.finished.score[:, -1]
        ended = (self.limits <= self.step) | (best == NEVER)
        # No active one can still beat the finished ones, as log-probabilities only fall.
        ended |= best / self.last_penalty <= last
        # k are finished and no active one is better now, with its length so far, than the last of them: poor ones
        # finish early in a bank with few hypotheses.
        return ended | (best / self.config.penalty(self.step) <= worst)

    def _collect(self, rows: Tensor, tokens: Tensor, total: Tensor, missing: Tensor) -> None:
        """Set the results of the sentences numbered `rows`: the finished hypotheses or, without any, the active ones.

        tokens (B, k, t), total (B, k), missing (B, k, T): of the active ones.
        """
        actives = zip(*(each[rows].tolist() for each in (tokens, total, missing)), strict=True)
        finished = self.finished.select(rows).hypotheses()
        for number, pool, active in zip(self.active[rows].tolist(), finished, actives, strict=True):
            self.results[number] = _Result(pool, []) if pool else self._unfinished(self.term_counts[number], *active)

    def _unfinished(
        self, terms: int, tokens: list[list[int]], total: list[float], missing: list[list[bool]]
    ) -> _Result:
        """Return the active hypotheses of a sentence that have most terms, and the terms that they lack.

        terms: how many the sentence has; there may be columns of `missing` for more.
        """
        penalty = self.config.penalty(self.step)
        possible = [place for place, value in enumerate(total) if value > NEVER]
        if not possible:
            return _Result([], list(range(terms)))
        best = min(possible, key=lambda place: (sum(missing[place]), -total[place]))
        if lacking := [term for term, is_missing in enumerate(missing[best]) if is_missing]:
            return _Result([], lacking)
        hypotheses = [
            Hypothesis(tokens[place], total[place], total[place] / penalty, finished=False)
            for place in possible
            if not any(missing[place])
        ]
        return _Result(sorted(hypotheses, key=lambda each: -each.score), [])


def _removed(log_p: Tensor, tokens: Tensor) -> Tensor:
    """Return log_p (B, k, V) at the tokens (B, k, n), and set it to -inf there."""
    values = log_p.gather(2, tokens)
    log_p.scatter_(2, tokens, NEVER)
    return values
