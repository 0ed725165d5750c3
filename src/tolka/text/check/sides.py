"""Sides that are not what the settings say: exchanged, in one language, or the same text twice; judged by a sample."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tolka.system.number_format import counted
from tolka.text.direction import Direction
from tolka.text.languages import installed_identifier
from tolka.text.pairs import Pair, PairSource
from tolka.text.scripts import is_in_other_script, is_known, letters_of

_SAMPLED_PAIRS, _READ_PAIRS = 400, 40_000
_MOST, _MANY = 0.5, 0.2  # of the pairs; a line may be too short to tell its language
_IsOther = Callable[[str, int], bool]  # a text and its side, 0 or 1 -> whether it is in the other side's language


def spread_sample(source: PairSource) -> Iterator[Pair]:
    """Yield some hundred pairs, spread over the beginning of a text, which is all of most texts."""
    step = max(1, min(source.count(), _READ_PAIRS) // _SAMPLED_PAIRS)
    return islice(source.read(), 0, _READ_PAIRS, step)


def fault_of_sides(pairs: Iterable[Pair], direction: Direction, exchange: str) -> str:
    """Return what is wrong with the sides of most of some hundred pairs; "" if nothing is, or nobody can tell.

    exchange: what to do where they are swapped, as `PairSource.exchange`.

    Languages of different scripts are told apart by their letters, others by py3langid, if it is installed.
    """
    counts: Counter[str] = Counter()
    tell: _IsOther = _never
    if all(map(is_known, direction)):
        tell = _by_langid(direction) if letters_of(direction[0]) == letters_of(direction[1]) else _by_script(direction)
    for pair in islice(pairs, _SAMPLED_PAIRS):
        if pair.source and pair.target and not pair.flaw:
            other = tell(pair.source, 0), tell(pair.target, 1)
            counts["pairs"] += 1
            counts["copied"] += pair.source.casefold() == pair.target.casefold()
            counts.update(side for side, is_other in zip(("source", "target"), other, strict=True) if is_other)
    return _in_words(counts, direction, exchange)


def _in_words(counts: Counter[str], direction: Direction, exchange: str) -> str:
    (source, target), least, many = direction, _MOST * counts["pairs"], _MANY * counts["pairs"]
    if counts["copied"] > least:
        return (
            f"both sides are the same text in {_of(counts, 'copied')}: was one file, or one column (corpus.columns), "
            "named twice?"
        )
    if max(counts["source"], counts["target"]) > least and min(counts["source"], counts["target"]) > many:
        return (
            f"the sides are swapped: the source is {target} in {_of(counts, 'source')}, and the target {source} in "
            f"{counts['target']}; {exchange}"
        )
    for side, own, other in (("source", source, target), ("target", target, source)):
        if counts[side] > least:
            return (
                f"both sides are {other}: so is the {side} in {_of(counts, side)}, where corpus.{side} says {own}; was "
                "the right file or column named?"
            )
    return ""


def _of(counts: Counter[str], what: str) -> str:
    return f"{counts[what]} of {counted(counts['pairs'], 'pair')} looked at"


def _by_script(direction: Direction) -> _IsOther:
    """Return a function that tells whether a side's text has more of the other language's letters than of its own."""
    return lambda text, side: is_in_other_script(text, direction[side], direction[1 - side])


def _never(text: str, side: int) -> bool:
    return False


def _by_langid(direction: Direction) -> _IsOther:
    """Return the same for languages of one script; it tells nothing where py3langid is missing."""
    identifier = installed_identifier()
    if identifier is None:
        return _never

    def is_other(text: str, side: int) -> bool:
        likelihoods = identifier.likelihoods(text)
        return likelihoods is not None and identifier.is_surely(likelihoods, direction[1 - side], direction[side])

    return is_other
