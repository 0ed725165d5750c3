"""Further merges for a tokenizer, learnt on new text after its own subwords (Purason et al. 2025, arXiv:2512.03989)."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import pairwise

_LEAST = 2  # occurrences of a pair that becomes a subword

# Subwords of a model trained afresh on the new text would often never occur if they were appended: the old ones come
# first, and cut words elsewhere. Merging continues from the old segmentation, where both parts of each new one occur.


@dataclass(frozen=True)
class Merge:
    """A new subword and its two parts. occurrences: merges of these. left: of them, those not in a larger subword."""

    text: str
    parts: tuple[str, str]
    occurrences: int
    left: int


def continued_merges(
    words: Mapping[tuple[str, ...], int], scores: Mapping[str, float], most: int, allowed: Callable[[str], bool]
) -> list[Merge]:
    """Return at most `most` new subwords in the order in which they are merged.

    words: the old segmentation of each word of the new text -> occurrences. scores: of the old subwords if they are
    merges themselves (BPE), the higher first; empty otherwise. allowed: whether a text may be a subword.
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
    # A heap of (-number, pair): of equally frequent pairs the first in the alphabet is merged, whatever the order of
    # the words. Numbers in it may be outdated, since a heap cannot change an entry.
    queue = [(-number, pair) for pair, number in total.items()]
    heapify(queue)
    found: list[tuple[str, tuple[str, str], int]] = []
    while queue and len(found) < most:
        number, pair = heappop(queue)
        if -number != total[pair]:
            # A larger number is in the queue as well; a smaller one is put there.
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
            symbols[word] = merge(symbols[word], ranks)
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


def merge(
    symbols: Sequence[str], scores: Mapping[str, float], on_merge: Callable[[str], object] = lambda merged: None
) -> tuple[str, ...]:
    """Merge neighbours into the subword of the highest score, the leftmost of equal ones, until there is none.

    on_merge: is called with each.
    """
    left = list(symbols)
    while len(left) > 1:
        pairs = [scores.get(one + two, -math.inf) for one, two in pairwise(left)]
        best = max(range(len(pairs)), key=pairs.__getitem__)
        if pairs[best] == -math.inf:
            break
        left[best : best + 2] = [left[best] + left[best + 1]]
        on_merge(left[best])
    return tuple(left)
