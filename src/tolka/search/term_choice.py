"""Which terms of a wish a search tries to meet."""

from collections.abc import Sequence
from dataclasses import replace

from tolka.search.hypothesis import Ids, Wish
from tolka.search.term_automaton import shortest


def possible(wish: Wish) -> Wish:
    """Return the wish without the alternatives that have a banned phrase in them, unless it stands in the prefix."""
    if not wish.terms or not wish.banned:
        return wish
    first = {token for alternatives in wish.terms for each in alternatives for token in each}
    banned = {phrase for phrase in wish.banned if phrase and phrase[0] in first and not _has(wish.prefix, phrase)}
    sizes = {len(phrase) for phrase in banned}
    terms = [
        tuple(
            each
            for each in alternatives
            if not any(each[i : i + n] in banned for n in sizes for i in range(len(each) - n + 1))
        )
        for alternatives in wish.terms
    ]
    return replace(wish, terms=tuple(filter(None, terms)))


def with_fewer(wish: Wish, missing: Sequence[int], limit: int) -> Wish:
    """Return the wish without the longer half of the missing terms, or as many of them as make the others fit."""
    sizes = [shortest(alternatives) for alternatives in wish.terms]
    longest_first, dropped = sorted(missing, key=lambda term: -sizes[term]), (len(missing) + 1) // 2
    while dropped < len(missing) and sum(sizes) - sum(sizes[term] for term in longest_first[:dropped]) >= limit:
        dropped += 1
    left = [term for number, term in enumerate(wish.terms) if number not in longest_first[:dropped]]
    return replace(wish, terms=tuple(left))


def _has(ids: Ids, phrase: Ids) -> bool:
    return any(ids[start : start + len(phrase)] == phrase for start in range(len(ids) - len(phrase) + 1))
