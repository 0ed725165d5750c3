"""Terms that translations must contain, as a constraint of beam search.

It is dynamic beam allocation (Post and Vilar 2018), for a whole batch at once (Hu et al. 2019). Hypotheses are in banks
by the number of term tokens that they have; every bank gets its share of the beam, and a hypothesis finishes only with
all terms.

Shapes: B active sentences, k beam size, c candidates a sentence, V vocabulary, T terms a sentence.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from tolka.data.batch import EOS
from tolka.search.base import NEVER, Candidates, extensions, take
from tolka.search.constraints.term_automaton import TermAutomaton, shortest
from tolka.search.hypothesis import Hypothesis, Ids, Wish, Wishes


class Result(NamedTuple):
    """Hypotheses of a sentence, best first, and the numbers of the terms that the search could not meet."""

    hypotheses: list[Hypothesis]
    missing: Sequence[int] = ()


def search_until_met(
    wishes: Wishes, limits: Sequence[int], search: Callable[[Sequence[int], Wishes], list[Result]]
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each sentence, best first.

    limits: most tokens of each translation. search: the numbers of some sentences and their wishes -> their results;
    sentences with terms and those without are searched apart.
    """
    results: list[list[Hypothesis]] = [[] for _ in wishes]
    wishes, pending = [_possible(wish) for wish in wishes], list(range(len(wishes)))
    # A sentence whose terms are not all met before its length limit is searched again without the longer half of the
    # missing ones, until the others are met.
    while pending:
        parts = [[number for number in pending if bool(wishes[number].terms) == have] for have in (False, True)]
        pending = []
        for numbers in filter(None, parts):
            found = search(numbers, [wishes[number] for number in numbers])
            for number, (hypotheses, missing) in zip(numbers, found, strict=True):
                results[number] = hypotheses
                # There are as many columns as the sentence with most terms needs.
                if missing := [term for term in missing if term < len(wishes[number].terms)]:
                    wishes[number] = with_fewer(wishes[number], missing, limits[number])
                    pending.append(number)
    return results


def _possible(wish: Wish) -> Wish:
    """Return the wish without the alternatives that have a banned phrase in them, unless it stands in the prefix."""
    if not wish.terms or not wish.banned:
        return wish
    # A list may ban thousands of phrases: only those that begin with a token of some alternative can be in one.
    first = {token for alternatives in wish.terms for each in alternatives for token in each}
    banned = {phrase for phrase in wish.banned if phrase and phrase[0] in first}
    sizes = {len(phrase) for phrase in banned}

    def stretches(ids: Ids) -> set[Ids]:
        return {ids[start : start + n] for n in sizes for start in range(len(ids) - n + 1)}

    banned -= stretches(wish.prefix)
    terms = (tuple(each for each in own if banned.isdisjoint(stretches(each))) for own in wish.terms)
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


class Terms:
    """Which terms each hypothesis of a beam has; it chooses and ranks the candidates."""

    def __init__(self, wishes: Wishes, vocabulary: int, device: torch.device) -> None:
        self._automaton = TermAutomaton.of([wish.terms for wish in wishes], vocabulary, device)
        self._state = self._automaton.start[:, None]  # (B, k)
        self.missing = self._automaton.missing  # (B, k, T): whether a hypothesis lacks the term

    def candidates(self, log_p: Tensor, total: Tensor, beam_size: int) -> tuple[Candidates, Tensor, Tensor]:
        """Return candidates, how many of its bank are better than each, (B, c), and their ranks, (B, c).

        The candidate with the highest rank is to be chosen first; that of an impossible one is -inf. log_p (B, k, V)
        is changed. total (B, k).
        """
        # A hypothesis ends only with all terms.
        log_p[..., EOS].masked_fill_(self.missing.any(dim=-1), NEVER)
        return self._in_order(self._extensions(log_p, total, beam_size))

    def keep(self, indices: Tensor) -> None:
        """Go on with those of the last candidates that have these numbers (B, k)."""
        self._state, self.missing = take(self._state, indices), take(self.missing, indices)

    def select(self, rows: Tensor) -> None:
        """Go on with the sentences numbered `rows` (B',)."""
        self._automaton = self._automaton.select(rows)
        self._state, self.missing = self._state[rows], self.missing[rows]

    def _extensions(self, log_p: Tensor, total: Tensor, beam_size: int) -> Candidates:
        """Return the candidates, every one once. log_p (B, k, V) is changed."""
        # Each hypothesis with each token that continues a term, and with each that begins one. Both are taken out of
        # log_p, so that none of them is a candidate twice.
        moves = self._automaton.moves(self._state)  # (B, k, M)
        openings = self._automaton.openings[:, None].expand(-1, moves.size(1), -1)  # (B, k, R)
        parts = [(tokens, _removed(log_p, tokens)) for tokens in (moves, openings)]
        # The 2k most likely of the others, of whatever hypothesis.
        likely = extensions(log_p, total, 2 * beam_size)
        parent = torch.arange(moves.size(1), device=moves.device)[:, None].expand(len(moves), -1, 1)  # (B, k, 1)
        if moves.size(1) > 1:
            # And each hypothesis with its most likely token, so that no bank dies out.
            value, token = log_p.max(dim=-1, keepdim=True)
            is_likely = (likely.parent[:, None] == parent) & (likely.token[:, None] == token)
            parts.append((token, value.masked_fill(is_likely.any(dim=-1, keepdim=True), NEVER)))
        totals = [likely.log_probability, *((value + total[..., None]).flatten(1) for _, value in parts)]
        parents = [likely.parent, *(parent.expand(token.shape).flatten(1) for token, _ in parts)]
        tokens = [likely.token, *(token.flatten(1) for token, _ in parts)]
        return Candidates(torch.cat(totals, dim=1), torch.cat(parents, dim=1), torch.cat(tokens, dim=1))

    def _in_order(self, found: Candidates) -> tuple[Candidates, Tensor, Tensor]:
        """Order the candidates by bank, that with most tokens of terms first, and then by log-probability."""
        # A term that is complete once stays met, whatever follows.
        state = self._automaton.next(self._state.gather(1, found.parent), found.token)
        missing = take(self.missing, found.parent) & ~self._automaton.complete[state]
        met = self._automaton.met_tokens(state, missing)
        # By two keys: a stable sort by bank keeps the order by log-probability within each bank.
        order = found.log_probability.argsort(dim=1, descending=True)
        banks = met.gather(1, order).sort(dim=1, descending=True, stable=True)
        order = order.gather(1, banks.indices)
        self._state, self.missing = take(state, order), take(missing, order)
        # A candidate's place in its bank: its position less that of the bank's first.
        position = torch.arange(order.size(1), device=order.device)
        is_first = torch.ones_like(order, dtype=torch.bool)
        is_first[:, 1:] = banks.values[:, 1:] != banks.values[:, :-1]
        place = position - torch.where(is_first, position, 0).cummax(dim=1).values
        # Each bank's best one, then each bank's second one and so on, the bank with most tokens of terms first: by
        # log-probability alone, hypotheses without terms, which are more likely, would fill the beam.
        rank = -(place * order.size(1) + position).double()
        candidates = Candidates(*(take(each, order) for each in found))
        return candidates, place, rank.masked_fill_(candidates.log_probability == NEVER, NEVER)


def _removed(log_p: Tensor, tokens: Tensor) -> Tensor:
    """Return log_p (B, k, V) at the tokens (B, k, n), and set it to -inf there."""
    values = log_p.gather(2, tokens)
    log_p.scatter_(2, tokens, NEVER)
    return values
