"""More merges for a tokenizer, learnt on new text after the subwords that it has.

A model that is trained afresh on the new text, and whose subwords are appended, has many that never occur: the old ones
come first, and cut words elsewhere. Continued merging starts from the old segmentation instead, so that each new
subword is made of two that occur side by side there (Purason et al. 2025, arXiv:2512.03989).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

_LEAST = 2  # occurrences of a pair that becomes a subword


@dataclass(frozen=True)
class Merge:
    """A new subword, its two parts, and how often they were merged; `left`: how often it is in no larger subword."""

    text: str
    parts: tuple[str, str]
    occurrences: int
    left: int


def continued_merges(
    words: Mapping[tuple[str, ...], int],
    scores: Mapping[str, float],
    most: int,
    allowed: Callable[[str], bool],
) -> list[Merge]:
    """Return at most `most` new subwords in the order in which they are merged.

    words: the old segmentation of each word of the new text -> occurrences. scores: of the old subwords where they are
    merges themselves, the higher first (BPE); empty otherwise. allowed: whether a text may be a subword. Of equally
    frequent pairs the first in the alphabet is merged, so that the result does not depend on the order of the words.
    """
    ranks, lowest = dict(scores), min(scores.values(), default=0.0)
    symbols, counts = list(words), list(words.values())
    allowed = cache(allowed)
    total: Counter[str] = Counter()
    where: dict[str, set[int]] = defaultdict(set)

    def count(word: int, sign: int) -> set[str]:
        """Add or subtract the pairs of a word; return them."""
        pairs = {
            pair: number for pair, number in Counter(map("".join, pairwise(symbols[word]))).items() if allowed(pair)
        }
        for pair, number in pairs.items():
            total[pair] += sign * number * counts[word]
            where[pair].add(word)
        return set(pairs)

    for word in range(len(symbols)):
        count(word, 1)
    queue = [(-number, pair) for pair, number in total.items()]
    heapify(queue)
    found: list[tuple[str, tuple[str, str], int]] = []
    while queue and len(found) < most:
        number, pair = heappop(queue)
        if -number != total[pair]:  # outdated: the present number is in the queue as well, or is put there
            if 0 < total[pair] < -number:
                heappush(queue, (-total[pair], pair))
            continue
        if -number < _LEAST:
            break
        ranks[pair] = lowest - len(found) - 1
        affected, changed, parts = sorted(where.pop(pair)), set[str](), None
        for word in affected:
            parts = parts or next((two for two in pairwise(symbols[word]) if "".join(two) == pair), None)
            changed |= count(word, -1)
            symbols[word] = merged(symbols[word], ranks)
            changed |= count(word, 1)
        assert parts is not None
        found.append((pair, parts, -number))
        del total[pair]
        for each in changed:
            if total[each] >= _LEAST:
                heappush(queue, (-total[each], each))
    left: Counter[str] = Counter()
    for row, times in zip(symbols, counts, strict=True):
        for symbol in row:
            left[symbol] += times
    return [Merge(*each, left[each[0]]) for each in found]


def merged(symbols: Sequence[str], scores: Mapping[str, float]) -> tuple[str, ...]:
    """Merge neighbours into the subword of the highest score, the leftmost of equal ones, until there is none."""
    left = list(symbols)
    while len(left) > 1:
        pairs = [scores.get(one + two, -math.inf) for one, two in pairwise(left)]
        best = max(range(len(pairs)), key=pairs.__getitem__)
        if pairs[best] == -math.inf:
            break
        left[best : best + 2] = [left[best] + left[best + 1]]
    return tuple(left)
