"""Which terms a hypothesis contains: an automaton over the terms of each sentence of a batch.

Aho and Corasick (1975): a state is the longest end of a hypothesis that begins an alternative of a term; one step finds
the next state, however many terms there are.

Shapes: B sentences, c hypotheses or candidates a sentence, T terms a sentence, N states, M tokens that lead on from a
state.
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
    """The automata of all sentences, as tables.

    keys, targets (E,): the transitions, sorted by state * V + token; any other token leads to the root. moves (N, M):
    tokens with a transition, then `<pad>`. progress (N, T): tokens of the term that the state has, if fewer are missing
    than the shortest alternative has. complete (N, T): whether an alternative ends here. root, start (B,): states
    before the first token, of which `start` has read `<s>`. sizes (B, T): tokens of each term's shortest alternative,
    0 where a sentence has fewer terms.
    """

    vocabulary: int
    keys: Tensor
    targets: Tensor
    moves: Tensor
    progress: Tensor
    complete: Tensor
    root: Tensor
    start: Tensor
    sizes: Tensor

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
            starts.append(states[roots[-1]].transitions.get(BOS, roots[-1]))
        most = max(map(len, terms))
        sizes = [
            [min(map(_length, alternatives)) for alternatives in each] + [0] * (most - len(each)) for each in terms
        ]
        edges = sorted(
            (number * vocabulary + token, target)
            for number, state in enumerate(states)
            for token, target in state.transitions.items()
        )
        moves = [sorted(state.transitions.keys() - {BOS}) for state in states]
        widest = max(map(len, moves))
        progress, complete = torch.zeros(2, len(states), most, dtype=torch.long)
        for number, state in enumerate(states):
            for term, value in state.progress.items():
                progress[number, term] = value
            for term in state.complete:
                complete[number, term] = 1
        tables = (
            torch.tensor([key for key, _ in edges]),
            torch.tensor([target for _, target in edges]),
            torch.tensor([row + [PAD] * (widest - len(row)) for row in moves]),
            progress,
            complete.bool(),
            torch.tensor(roots),
            torch.tensor(starts),
            torch.tensor(sizes),
        )
        return cls(vocabulary, *(table.to(device) for table in tables))

    @property
    def missing(self) -> Tensor:
        """(B, 1, T): whether the term is missing in an empty hypothesis."""
        return (self.sizes > 0)[:, None]

    def select(self, rows: Tensor) -> "TermAutomaton":
        """Return the automata of the sentences numbered `rows` (B',)."""
        return replace(self, root=self.root[rows], start=self.start[rows], sizes=self.sizes[rows])

    def next(self, state: Tensor, token: Tensor) -> Tensor:
        """state, token (B, c) -> the next states (B, c)."""
        key = state * self.vocabulary + token
        place = torch.searchsorted(self.keys, key).clamp_(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == key, self.targets[place], self.root[:, None])

    def met_tokens(self, state: Tensor, missing: Tensor) -> Tensor:
        """Return (B, c): tokens of terms that hypotheses have, those of the term that is under way included.

        state (B, c), missing (B, c, T). It is the sum over `sizes`, less the fewest tokens that are still needed.
        """
        of_met = (self.sizes[:, None] * ~missing).sum(dim=-1)
        return of_met + (self.progress[state] * missing).amax(dim=-1)


@dataclass
class _State:
    """A state under construction. depth: of its prefix, without `<s>`. children: in the trie. transitions: of all."""

    children: dict[int, int] = field(default_factory=dict)
    transitions: dict[int, int] = field(default_factory=dict)
    progress: dict[int, int] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)


def _length(alternative: Ids) -> int:
    """Return the number of tokens, without `<s>`."""
    return len(alternative) - (alternative[0] == BOS)


def _states(terms: Terms, offset: int) -> list[_State]:
    """Return the states of one sentence, the root first; they are numbered from `offset`."""
    states = [_State()]
    for term, alternatives in enumerate(terms):
        for alternative in alternatives:
            if not alternative or alternative == (BOS,) or any(token <= EOS for token in alternative[1:]):
                raise DataError("a term has no subwords, or a special symbol among them: leave it out")
        size = min(map(_length, alternatives))
        for alternative in alternatives:
            place = 0
            for left, token in zip(range(len(alternative) - 1, -1, -1), alternative, strict=True):
                if token not in states[place].children:
                    states[place].children[token] = len(states)
                    states.append(_State())
                place = states[place].children[token]
                if size > left:
                    states[place].progress[term] = max(size - left, states[place].progress.get(term, 0))
            states[place].complete.add(term)
    # Breadth first, so that a state's failure state, which is shorter, is complete before it.
    failures = deque((child, 0) for child in states[0].children.values())
    states[0].transitions = states[0].children
    while failures:
        place, failure = failures.popleft()
        state, shorter = states[place], states[failure]
        for term, value in shorter.progress.items():
            state.progress[term] = max(value, state.progress.get(term, 0))
        state.complete |= shorter.complete
        state.transitions = {**shorter.transitions, **state.children}
        failures.extend((child, shorter.transitions.get(token, 0)) for token, child in state.children.items())
    for state in states:
        state.transitions = {token: target + offset for token, target in state.transitions.items()}
    return states
