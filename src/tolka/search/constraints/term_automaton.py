"""Which terms a hypothesis contains: an automaton over the terms of each sentence of a batch.

Aho and Corasick (1975): a state is the longest end of a hypothesis that begins an alternative of a term; one step finds
the next state, however many terms there are.

Shapes: B sentences, c hypotheses or candidates a sentence, T terms a sentence, N states.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from tolka.data.batch import BOS, EOS, PAD
from tolka.errors import DataError
from tolka.search.hypothesis import Ids

Terms = Sequence[Sequence[Ids]]
"""The terms of a sentence: for each, its alternatives."""


@dataclass(frozen=True)
class TermAutomaton:
    """The automata of all sentences, as tables of all their N states and E transitions."""

    vocabulary: int
    # The transitions, sorted by state and token. A state other than a root has only those that its root has not, or has
    # with another target.
    keys: Tensor  # (E,): state * V + token
    tokens: Tensor  # (E,)
    targets: Tensor  # (E,)
    first: Tensor  # (N + 1,): where those of each state begin
    # Tokens of a term that a state has read, if fewer are missing than the shortest alternative has.
    progress: Tensor  # (N, T)
    complete: Tensor  # (N, T): whether an alternative ends here
    # The states before the first token, of which `start` has read `<s>`.
    root: Tensor  # (B,)
    start: Tensor  # (B,)
    sizes: Tensor  # (B, T): tokens of each term's shortest alternative; 0 where a sentence has fewer terms
    openings: Tensor  # (B, R): the tokens that begin a term, then `<pad>`

    @classmethod
    def of(cls, terms: Sequence[Terms], vocabulary: int, device: torch.device) -> "TermAutomaton":
        """Build the automata of the sentences with these terms.

        An alternative that begins with `<s>` counts only at the beginning of a translation. DataError for an
        alternative without subwords, or with a special symbol elsewhere.
        """
        states: list[_State] = []
        roots, starts = [], []
        for of_sentence in terms:
            roots.append(len(states))
            states += _states(of_sentence, len(states))
            # `<s>` has been read before the first token, and never comes again: the root has no transition for it.
            starts.append(states[roots[-1]].transitions.pop(BOS, roots[-1]))
        edges = sorted(
            (number * vocabulary + token, token, target)
            for number, state in enumerate(states)
            for token, target in state.transitions.items()
        )
        keys, tokens, targets = torch.tensor(edges).T.contiguous()
        counts = torch.tensor([0, *(len(state.transitions) for state in states)])
        most = max(map(len, terms))
        sizes = [[*map(shortest, each), *[0] * (most - len(each))] for each in terms]
        progress = _table([state.progress for state in states], most)
        complete = _table([dict.fromkeys(state.complete, 1) for state in states], most)
        openings = [list(states[root].transitions) for root in roots]
        widest = max(map(len, openings))
        tables = (
            *(keys, tokens, targets, counts.cumsum(0), progress, complete.bool()),
            *(torch.tensor(roots), torch.tensor(starts), torch.tensor(sizes, dtype=torch.int32)),
            torch.tensor([row + [PAD] * (widest - len(row)) for row in openings], dtype=torch.long),
        )
        return cls(vocabulary, *(table.to(device) for table in tables))

    @property
    def missing(self) -> Tensor:
        """(B, 1, T): whether the term is missing in an empty hypothesis."""
        return (self.sizes > 0)[:, None]

    def select(self, rows: Tensor) -> "TermAutomaton":
        """Return the automata of the sentences numbered `rows` (B',)."""
        names = ("root", "start", "sizes", "openings")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def next(self, state: Tensor, token: Tensor) -> Tensor:
        """state, token (B, c) -> the next states (B, c)."""
        # Where a state has no transition of its own, which keeps the tables small, the root's serves; and where the
        # root has none either, no term has begun.
        root = self.root[:, None]
        return self._target(state, token, self._target(root, token, root))

    def _target(self, state: Tensor, token: Tensor, otherwise: Tensor) -> Tensor:
        """Return where the state's own transition leads, `otherwise` where it has none."""
        # A sorted list of keys, searched by bisection: a table (states, vocabulary) would be nearly empty.
        key = state * self.vocabulary + token
        place = torch.searchsorted(self.keys, key).clamp_(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == key, self.targets[place], otherwise)

    def moves(self, state: Tensor) -> Tensor:
        """Return (B, c, M): the tokens that lead on in a term that is under way, then `<pad>`. state (B, c).

        M is as many as any of the states has.
        """
        first = self.first[state]
        count = (self.first[state + 1] - first).masked_fill_(state == self.root[:, None], 0)
        number = torch.arange(int(count.max()), device=state.device)
        place = (first[..., None] + number).clamp_(max=len(self.tokens) - 1)
        return self.tokens[place].masked_fill_(number >= count[..., None], PAD)

    def met_tokens(self, state: Tensor, missing: Tensor) -> Tensor:
        """Return (B, c): tokens of terms that hypotheses have, those of the term that is under way included.

        state (B, c), missing (B, c, T). It is the sum over `sizes`, less the fewest tokens that are still needed.
        """
        # The last tokens of a hypothesis may begin several terms: the one that is furthest counts.
        of_met = (self.sizes[:, None] * ~missing).sum(dim=-1)
        return of_met + (self.progress[state] * missing).amax(dim=-1)


@dataclass
class _State:
    """A state under construction. children: in the trie. transitions: those that the root has not, or has otherwise."""

    children: dict[int, int] = field(default_factory=dict)
    transitions: dict[int, int] = field(default_factory=dict)
    progress: dict[int, int] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)


def shortest(alternatives: Sequence[Ids]) -> int:
    """Return the number of tokens of the shortest alternative, without `<s>`."""
    return min(len(each) - (each[0] == BOS) for each in alternatives)


def _table(rows: Sequence[dict[int, int]], columns: int) -> Tensor:
    """Return (N, columns): the values of each row by their columns, elsewhere 0."""
    table = torch.zeros(len(rows), columns, dtype=torch.int32)
    entries = [(row, column, value) for row, values in enumerate(rows) for column, value in values.items()]
    if entries:
        row, column, value = torch.tensor(entries).T
        table[row, column] = value.int()
    return table


def _states(terms: Terms, offset: int) -> list[_State]:
    """Return the states of one sentence, the root first; they are numbered from `offset`."""
    states = [_State()]
    for term, alternatives in enumerate(terms):
        for alternative in alternatives:
            if not alternative or alternative == (BOS,) or any(token <= EOS for token in alternative[1:]):
                raise DataError("a term has no subwords, or a special symbol among them: leave it out")
        size = shortest(alternatives)
        for alternative in alternatives:
            place = 0
            for left, token in zip(range(len(alternative) - 1, -1, -1), alternative, strict=True):
                if token not in states[place].children:
                    states[place].children[token] = len(states)
                    states.append(_State())
                place = states[place].children[token]
                # In tokens of the shortest alternative, so that a long one does not count for more: one that lacks
                # `left` tokens is as far as the shortest one that lacks them.
                if size > left:
                    states[place].progress[term] = max(size - left, states[place].progress.get(term, 0))
            states[place].complete.add(term)
    # A state's failure state is the longest shorter end that begins an alternative too: what it completes, the state
    # completes. Breadth first, so that the shorter one is known before.
    opening = states[0].children
    failures = deque((child, 0) for child in opening.values())
    while failures:
        place, failure = failures.popleft()
        state, shorter = states[place], states[failure]
        for term, value in shorter.progress.items():
            state.progress[term] = max(value, state.progress.get(term, 0))
        state.complete |= shorter.complete
        # The root's are empty until all others are done.
        state.transitions = {**shorter.transitions, **state.children}
        failures.extend(
            (child, shorter.transitions.get(token, opening.get(token, 0))) for token, child in state.children.items()
        )
    states[0].transitions = dict(opening)
    for state in states:
        state.transitions = {token: target + offset for token, target in state.transitions.items()}
    return states
