"""Pairs of a source sentence and its translation, as streams: nothing here holds a corpus in memory."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from tolka.errors import DataError
from tolka.system.number_format import count_text
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.lines import LINE_LIMIT, LineLimit, count_and_digest, read_lines


@dataclass(frozen=True)
class Pair:
    """A source sentence and its translation. flaw: what the reader found wrong with it, or ""."""

    source: str
    target: str
    flaw: str = ""

    @property
    def swapped(self) -> "Pair":
        """The pair with its sides exchanged."""
        return Pair(self.target, self.source, self.flaw)


# `check.loss` does not count these flaws: the text is read once already, or is not in the two languages.
FURTHER = "further "
"""Beginning of the flaw of a pair that has another variant or reference of a text that is read."""
NO_PAIR = "no pair in "
"""Beginning of the flaw of a unit that is not in both languages, in a file of several."""
LOW_SCORE = "a score below "
"""Beginning of the flaw of a pair that corpus.min_score leaves out."""


class PairSource(ABC):
    """A source of pairs that can be read as often as needed."""

    name: str
    """short name for tables and logs"""
    direction: Direction = UNKNOWN
    """from which language into which it is; set by the corpus that it is of"""
    has_lines = False
    """whether a line of a file is a text or a row"""

    @abstractmethod
    def read(self) -> Iterator[Pair]:
        """Yield all pairs, in order, without line feeds; DataError with file and line."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a digest that changes with the content."""

    @abstractmethod
    def count(self) -> int:
        """Return how many pairs `read` will yield, for progress bars; an estimate where only reading would tell."""


class PairStream(ABC):
    """Pairs that are read once and not stored; at the end, the stream starts again."""

    name: str
    """short name for logs"""
    direction: Direction
    """from which language into which it is"""

    @abstractmethod
    def take(self, count: int) -> list[Pair]:
        """Return the next pairs, fewer at the end of the text, then from its start; DataError for an empty text."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the position, as plain values."""

    @abstractmethod
    def seek(self, state: dict[str, Any]) -> None:
        """Go to a position that `state` returned; {} is the beginning."""


class Swapped(PairSource):
    """A source of pairs with its sides exchanged, for the opposite direction."""

    def __init__(self, source: PairSource) -> None:
        self._source, self.name, self.direction = source, source.name, source.direction.swapped
        self.has_lines = source.has_lines

    def read(self) -> Iterator[Pair]:
        return (pair.swapped for pair in self._source.read())

    def fingerprint(self) -> str:
        return f"swapped {self._source.fingerprint()}"

    def count(self) -> int:
        return self._source.count()


class Scored(PairSource):
    """A source of pairs without those whose score is too low. scores: the same texts, with the score as the target."""

    def __init__(self, pairs: PairSource, scores: PairSource, least: float) -> None:
        self._pairs, self._scores, self._least = pairs, scores, least
        self.name, self.has_lines = pairs.name, pairs.has_lines
        self.columns = getattr(pairs, "columns", ())

    def read(self) -> Iterator[Pair]:
        for number, (pair, scored) in enumerate(zip(self._pairs.read(), self._scores.read(), strict=True), 1):
            if pair.flaw:
                yield pair
                continue
            try:
                score = float(scored.target)
            except ValueError:
                score = math.nan
            if not math.isfinite(score):
                raise DataError(
                    f"{self.name}: the score of pair {number} ({scored.target!r:.60}) is not a finite number: does "
                    "corpus.score name the wrong column or file?"
                )
            yield replace(pair, flaw=f"{LOW_SCORE}{self._least:g}") if score < self._least else pair

    def fingerprint(self) -> str:
        return f"{self._pairs.fingerprint()} scored {self._scores.fingerprint()} {self._least!r}"

    def count(self) -> int:
        return self._pairs.count()


_RANGE = "<range>"  # what eBible writes for a verse that is joined to the one before
EBIBLE_VERSES = 41_899
"""Lines of eBible's vref.txt, and so of each of its texts."""
_LACKING = f"{NO_PAIR}verses that one side lacks"


class ParallelFiles(PairSource):
    """Two files whose lines are pairs, or verses as eBible writes them, which may be joined or missing."""

    has_lines = True

    def __init__(self, source: Path, target: Path, name: str, limit: LineLimit = LINE_LIMIT) -> None:
        self.name, self.limit = name, limit
        self.paths = (source, target)

    @cached_property
    def _count_and_digest(self) -> tuple[int, str]:
        """The line count and the digest of both files; DataError when they cannot be a corpus."""
        source, target = self.paths
        count, source_digest = count_and_digest(source, self.limit)
        target_count, target_digest = count_and_digest(target, self.limit)
        if source.samefile(target):
            raise DataError(f"{source} and {target} are the same file; give one file per language")
        for path, lines in ((source, count), (target, target_count)):
            if lines == 0:
                raise DataError(f"{path}: the file is empty")
        if count != target_count:
            raise DataError(
                f"{source} has {count_text(count, 'line')} but {target} has {target_count}: line by line they are not "
                "pairs. Find the first line that does not match (often near a blank or a broken line) and align "
                "them again"
            )
        return count, hashlib.sha256((source_digest + target_digest).encode()).hexdigest()

    def count(self) -> int:
        return self._count_and_digest[0]

    def fingerprint(self) -> str:
        return self._count_and_digest[1]

    def read(self) -> Iterator[Pair]:
        # DataError before the first pair: after a missing line every pair would be wrong.
        self.count()
        sides = (read_lines(path, limit=self.limit) for path in self.paths)
        yield from joined_verses((Pair(*texts) for texts in zip(*sides, strict=True)), self.count())


def joined_verses(pairs: Iterable[Pair], count: int) -> Iterator[Pair]:
    """Yield the pairs; one with `<range>` on a side is joined to the pair before, on both sides.

    count: of all pairs; where it is that of eBible's verses, a blank side is one that a translation lacks.
    """
    joined, further, of_ebible = None, 0, count == EBIBLE_VERSES
    for pair in chain(pairs, [None]):
        if pair and joined and _RANGE in (pair.source.strip(), pair.target.strip()):
            joined, further = _with_verse(joined, pair), further + 1
            continue
        if joined:
            yield joined
            # Every line is a pair, which is counted: these are read as parts of another one.
            yield from repeat(Pair("", "", f"{FURTHER}verses, joined to those before"), further)
        is_missing = of_ebible and pair and not _is_whole(pair)
        joined, further = (replace(pair, flaw=_LACKING) if pair and is_missing else pair), 0


def _with_verse(joined: Pair, verse: Pair) -> Pair:
    """Return a pair with the next verse, of which at least one side is `<range>`: the pair before has its text."""
    sides = zip((joined.source, joined.target), (verse.source.strip(), verse.target.strip()), strict=True)
    source, target = (old if new == _RANGE else f"{old.strip()} {new}" for old, new in sides)
    # Where one translation lacks a verse of the range, the other has more text.
    return Pair(source, target, joined.flaw if _is_whole(joined) and _is_whole(verse) else _LACKING)


def _is_whole(pair: Pair) -> bool:
    return bool(pair.source.strip() and pair.target.strip())
