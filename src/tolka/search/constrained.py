"""Beam search for translations that contain given terms.

hard: dynamic beam allocation (Post and Vilar 2018), for a whole batch at once (Hu et al. 2019). Hypotheses are in banks
by the number of term tokens that they have; every bank gets its share of the beam, and a hypothesis finishes only with
all terms. soft: every term token adds a bonus to the log-probability, which a hypothesis loses again when it breaks the
term off (Zhao et al. 2019, "Shallow-Fusion End-to-End Contextual Biasing").

Shapes: B active sentences, k beam size, c candidates a sentence, V vocabulary, t tokens so far, T terms a sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.models.base import Seq2Seq
from tolka.search.base import SearchConfig, active_rows, extensions, first_tokens, next_log_probabilities
from tolka.search.hypothesis import Hypothesis, Wish
from tolka.search.rules import Rules
from tolka.search.term_automaton import TermAutomaton

_NEVER = float("-inf")
Plain = Callable[[Seq2Seq, Tensor, Tensor, Sequence[Wish]], list[list[Hypothesis]]]
"""A search without terms: model, source, lengths, wishes -> hypotheses of each sentence."""


@dataclass(frozen=True)
class TermOptions:
    """Options of beam search, as this one needs them.

    general: limits and rules. compared: as in `BeamConfig`. penalty, penalties: lp of a length, or of several. bonus:
    in nats, for each token of a term; None for terms that a translation must contain.
    """

    general: SearchConfig
    beam_size: int
    compared: int
    penalty: Callable[[float], float]
    penalties: Callable[[Tensor], Tensor]
    bonus: float | None


def search_with_terms(
    options: TermOptions, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish], plain: Plain
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each sentence, best first; sentences without terms are searched apart, by `plain`.

    source (B, S), lengths (B,). A sentence whose terms are not all met before its length limit is searched again
    without the longest of the missing ones, until the others are met.
    """
    limits = options.general.limits(lengths).tolist()
    results: list[list[Hypothesis]] = [[] for _ in wishes]
    wishes, pending = list(wishes), list(range(len(wishes)))
    while pending:
        with_terms = [number for number in pending if wishes[number].terms]
        if without := [number for number in pending if not wishes[number].terms]:
            found = plain(model, *_rows(source, lengths, without), [wishes[number] for number in without])
            for number, hypotheses in zip(without, found, strict=True):
                results[number] = hypotheses
        pending = []
        if with_terms:
            own = [wishes[number] for number in with_terms]
            beam = _TermBeam(options, model, *_rows(source, lengths, with_terms), own)
            while len(beam.active):
                beam.advance()
            for number, result in zip(with_terms, beam.results, strict=True):
                results[number] = result.hypotheses
                if result.missing:
                    wishes[number] = _with_fewer(wishes[number], result.missing, limits[number])
                    pending.append(number)
    return results


def _with_fewer(wish: Wish, missing: Sequence[int], limit: int) -> Wish:
    """Return the wish without the longest of the missing terms, or as many of them as make the others fit."""
    sizes = [min(map(len, alternatives)) for alternatives in wish.terms]
    longest_first, dropped = sorted(missing, key=lambda term: -sizes[term]), 1
    while dropped < len(missing) and sum(sizes) - sum(sizes[term] for term in longest_first[:dropped]) >= limit:
        dropped += 1
    left = [term for number, term in enumerate(wish.terms) if number not in longest_first[:dropped]]
    return replace(wish, terms=tuple(left))


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


class _Candidates(NamedTuple):
    """Hypotheses that are one token longer, (B, c) each, in the order in which they are chosen.

    rank: log-probability and bonus. state, missing (B, c, T): of TermAutomaton. place: how many of its bank are better.
    """

    log_p: Tensor
    rank: Tensor
    parent: Tensor
    token: Tensor
    state: Tensor
    missing: Tensor
    met: Tensor
    place: Tensor

    def gather(self, indices: Tensor) -> Self:
        """Return those with these numbers (B, n)."""
        return type(self)(*(_gather(each, indices) for each in self))


class _Pool(NamedTuple):
    """The k finished hypotheses with the highest scores. tokens (B, k, L), others (B, k); score -inf where none is."""

    tokens: Tensor
    lengths: Tensor
    log_p: Tensor
    score: Tensor

    def add(self, is_finished: Tensor, found: _Candidates, tokens: Tensor, penalty: float) -> Self:
        """Add the candidates that `is_finished` (B, c) marks; tokens (B, k, t): of their parents."""
        size, length = self.score.size(1), tokens.size(2)
        score = (found.rank / penalty).masked_fill(~is_finished, _NEVER)
        best = score.topk(min(size, score.size(1)), dim=1)
        longer = self.tokens.new_zeros(*best.indices.shape, self.tokens.size(2))
        longer[..., :length] = _gather(tokens, found.parent.gather(1, best.indices))
        new = (longer, torch.full_like(best.indices, length), found.log_p.gather(1, best.indices), best.values)
        both = [torch.cat(parts, dim=1) for parts in zip(self, new, strict=True)]
        kept = both[3].topk(size, dim=1).indices
        return type(self)(*(_gather(part, kept) for part in both))


class _TermBeam:
    """State of the search: k active hypotheses for each active sentence, and the results of finished sentences."""

    def __init__(
        self, options: TermOptions, model: Seq2Seq, source: Tensor, lengths: Tensor, wishes: Sequence[Wish]
    ) -> None:
        self.options, self.model = options, model
        self.rules = Rules(options.general, lengths, wishes)
        self.automaton = TermAutomaton.of([wish.terms for wish in wishes], model.vocabulary_size, source.device)
        self.decoder = model.start(source, lengths)
        self.token = first_tokens(len(source), source.device)  # (B, k), with k = 1 at first
        self.tokens = self.token.new_empty(len(source), 1, 0)  # (B, k, t)
        self.total = torch.zeros(len(source), 1, device=source.device)  # (B, k) log-probabilities
        self.state = self.automaton.start[:, None]  # (B, k)
        self.missing = self.automaton.missing  # (B, k, T)
        self.active = torch.arange(len(source), device=source.device)  # (B,): the number of each sentence in `source`
        self.limits = options.general.limits(lengths)
        self.last_penalty = options.penalties(self.limits)
        shape, longest = (len(source), options.beam_size), int(self.limits.max())
        zeros = self.total.new_zeros(shape)
        self.pool = _Pool(self.token.new_zeros(*shape, longest), self.token.new_zeros(shape), zeros, zeros + _NEVER)
        self.results = [_Result([], []) for _ in range(len(source))]
        self.step = 0

    def advance(self) -> None:
        """Extend every active hypothesis by one token; remove finished sentences from the batch."""
        beam_size = self.options.beam_size
        features, self.decoder = self.model.step(self.token, self.decoder)
        log_p = next_log_probabilities(self.model, features)
        if self.rules:
            self.rules.apply(log_p, self.tokens, self.active)
        if self.options.bonus is None:
            log_p[..., EOS].masked_fill_(self.missing.any(dim=-1), _NEVER)
        self.step += 1
        found = self._in_order(*self._extensions(log_p))
        is_end = found.token == EOS
        is_finished = is_end & (found.log_p > _NEVER) & (found.place < beam_size)
        if bool(is_finished.any()):
            self.pool = self.pool.add(is_finished, found, self.tokens, self.options.penalty(self.step))

        # Each bank's best one, then each bank's second one and so on, the bank with most tokens of terms first.
        count = found.place.size(1)
        turn = found.place * count + torch.arange(count, device=is_end.device)
        turn = turn.masked_fill(is_end | (found.log_p == _NEVER), count * count)
        chosen = found.gather(turn.topk(min(beam_size, count), dim=1, largest=False).indices)
        total = chosen.log_p.masked_fill(chosen.token == EOS, _NEVER)
        tokens = torch.cat([_gather(self.tokens, chosen.parent), chosen.token[..., None]], dim=2)
        sentence = torch.arange(len(tokens), device=tokens.device)[:, None]
        rows = sentence * self.tokens.size(1) + chosen.parent  # of the decoder's hypotheses
        parts = (total, chosen.token, tokens, rows, chosen.state, chosen.missing)
        finished = self._is_finished(total, chosen)
        if bool(finished.any()):
            self._collect(finished.nonzero()[:, 0], tokens, total, chosen)
            left = active_rows(~finished)
            self.pool = _Pool(*(part[left] for part in self.pool))
            self.automaton = self.automaton.select(left)
            self.active, self.limits, self.last_penalty = self.active[left], self.limits[left], self.last_penalty[left]
            parts = tuple(part[left] for part in parts)  # type: ignore[assignment]
        self.total, self.token, self.tokens, rows, self.state, self.missing = parts
        if len(self.active):
            self.decoder = self.decoder.select(rows)

    def _extensions(self, log_p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probability, parent and token of all candidates, (B, c) each, every one once.

        They are each hypothesis with each token that leads on in a term, the 2k most likely of the others and, so that
        no bank dies out, each hypothesis with its most likely token. log_p (B, k, V) is changed.
        """
        moves = self.automaton.moves[self.state]  # (B, k, M)
        in_terms = log_p.gather(2, moves) + self.total[..., None]
        log_p.scatter_(2, moves, _NEVER)
        likely = extensions(log_p, self.total, 2 * self.options.beam_size)
        parent = torch.arange(moves.size(1), device=moves.device).expand(len(moves), -1)  # (B, k)
        totals = [likely.log_probability, in_terms.flatten(1)]
        parents = [likely.parent, parent[..., None].expand(moves.shape).flatten(1)]
        tokens = [likely.token, moves.flatten(1)]
        if self.options.bonus is None and moves.size(1) > 1:
            own = extensions(log_p.flatten(0, 1)[:, None], self.total.view(-1, 1), 1)
            own_token = own.token.view(parent.shape)
            is_likely = (likely.parent[:, None] == parent[..., None]) & (likely.token[:, None] == own_token[..., None])
            totals.append(own.log_probability.view(parent.shape).masked_fill(is_likely.any(dim=-1), _NEVER))
            parents.append(parent)
            tokens.append(own_token)
        return torch.cat(totals, dim=1), torch.cat(parents, dim=1), torch.cat(tokens, dim=1)

    def _in_order(self, log_p: Tensor, parent: Tensor, token: Tensor) -> _Candidates:
        """Return the candidates: hard, by bank and then by log-probability; soft, by log-probability and bonus."""
        state = self.automaton.next(self.state.gather(1, parent), token)
        missing = _gather(self.missing, parent) & ~self.automaton.complete[state]
        met = self.automaton.met_tokens(state, missing)
        rank = log_p if self.options.bonus is None else log_p + self.options.bonus * met
        order = rank.argsort(dim=1, descending=True)
        position = torch.arange(order.size(1), device=order.device).expand(order.shape)
        place = position
        if self.options.bonus is None:
            banks = met.gather(1, order).sort(dim=1, descending=True, stable=True)
            order = order.gather(1, banks.indices)
            is_first = torch.ones_like(order, dtype=torch.bool)
            is_first[:, 1:] = banks.values[:, 1:] != banks.values[:, :-1]
            place = position - torch.where(is_first, position, 0).cummax(dim=1).values
        return (
            _Candidates(log_p, rank, parent, token, state, missing, met, position).gather(order)._replace(place=place)
        )

    def _is_finished(self, total: Tensor, chosen: _Candidates) -> Tensor:
        """Return (B,): whether the search of a sentence ends. total (B, k): of the active hypotheses.

        It ends when none of them can still beat the finished ones, as log-probabilities only fall. Besides, soft, when
        k are finished; hard, when k are finished and none is better now, with its length so far, than the last of them,
        since poor ones finish early in a bank with few hypotheses.
        """
        best, last = total.amax(dim=1), self.pool.score[:, self.options.compared - 1]
        worst = self.pool.score[:, -1]
        ended = (self.limits <= self.step) | (best == _NEVER)
        if self.options.bonus is None:
            return ended | (best / self.last_penalty <= last) | (best / self.options.penalty(self.step) <= worst)
        left = self.automaton.sizes.sum(dim=1, keepdim=True) - chosen.met
        bound = (total + self.options.bonus * (chosen.met + left)).amax(dim=1)
        return ended | (worst > _NEVER) | ((bound <= 0) & (bound / self.last_penalty <= last))

    def _collect(self, rows: Tensor, tokens: Tensor, total: Tensor, chosen: _Candidates) -> None:
        """Set the results of the sentences numbered `rows`: the finished hypotheses or, without any, the active ones.

        tokens (B, k, t), total (B, k).
        """
        of_active = (tokens, total, chosen.rank, chosen.missing)
        pools, actives = (
            zip(*(part[rows].tolist() for part in parts), strict=True) for parts in (self.pool, of_active)
        )
        for number, pool, active in zip(self.active[rows].tolist(), pools, actives, strict=True):
            finished = [
                Hypothesis(ids[:length], log_p, score, finished=True)
                for ids, length, log_p, score in zip(*pool, strict=True)
                if score > _NEVER
            ]
            self.results[number] = _Result(finished, []) if finished else self._unfinished(*active)

    def _unfinished(
        self, tokens: list[list[int]], total: list[float], rank: list[float], missing: list[list[bool]]
    ) -> _Result:
        """Return the active hypotheses of a sentence that have most terms, and the terms that they lack."""
        penalty = self.options.penalty(self.step)
        possible = [place for place, value in enumerate(total) if value > _NEVER]
        if self.options.bonus is None:
            if not possible:
                return _Result([], list(range(len(missing[0]))))
            best = min(possible, key=lambda place: (sum(missing[place]), -total[place]))
            if lacking := [term for term, is_missing in enumerate(missing[best]) if is_missing]:
                return _Result([], lacking)
            possible = [place for place in possible if not any(missing[place])]
        found = [Hypothesis(tokens[place], total[place], rank[place] / penalty, finished=False) for place in possible]
        return _Result(sorted(found, key=lambda each: -each.score), [])


def _gather(values: Tensor, indices: Tensor) -> Tensor:
    """values (B, n, ...), indices (B, m) below n -> (B, m, ...)."""
    if values.dim() == 2:
        return values.gather(1, indices)
    return values.gather(1, indices[..., None].expand(-1, -1, values.size(2)))
