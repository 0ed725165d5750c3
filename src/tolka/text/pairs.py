"""Pairs of a source sentence and its translation, as streams: nothing here holds a corpus in memory."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from tolka.errors import DataError
from tolka.text.lines import LINE_LIMIT, LineLimit, count_and_digest, read_lines


@dataclass(frozen=True)
class Pair:
    """A source sentence and its translation. flaw: what the reader knows to be wrong with it, or nothing."""

    source: str
    target: str
    flaw: str = ""


class PairSource(ABC):
    """One place that pairs can be read from, as often as needed."""

    name: str
    """short name for tables and logs"""

    @abstractmethod
    def read(self) -> Iterator[Pair]:
        """All pairs, in order, without line feeds; DataError with file and line."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the content does."""

    @abstractmethod
    def count(self) -> int:
        """How many pairs `read` will give, for progress bars: about, where only reading would tell."""


class PairStream(ABC):
    """Pairs that are read as they come and kept nowhere; when they end, they begin anew."""

    name: str
    """short name for logs"""

    @abstractmethod
    def take(self, count: int) -> list[Pair]:
        """The next pairs, fewer where the text ends: the next call begins anew. DataError when it has none at all."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """The place, as plain values."""

    @abstractmethod
    def seek(self, state: dict[str, Any]) -> None:
        """Go to a place that `state` gave; {} is the beginning."""


class ParallelFiles(PairSource):
    """Two files, sentence by sentence; checked for equal line counts before the first pair is given."""

    def __init__(self, source: Path, target: Path, name: str, limit: LineLimit = LINE_LIMIT) -> None:
        self.name, self.limit = name, limit
        self.paths = (source, target)
        self._facts: tuple[int, str] | None = None

    def _examine(self) -> tuple[int, str]:
        """Line count and digest of both; DataError when they cannot be a corpus."""
        if self._facts is None:
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
                    f"{source} has {count} lines but {target} has {target_count}: line by line they are no pairs. "
                    "Find the first line that does not match (often near a blank or a broken line) and align them again"
                )
            self._facts = count, hashlib.sha256((source_digest + target_digest).encode()).hexdigest()
        return self._facts

    def count(self) -> int:
        """See PairSource.count."""
        return self._examine()[0]

    def fingerprint(self) -> str:
        """See PairSource.fingerprint."""
        return self._examine()[1]

    def read(self) -> Iterator[Pair]:
        """See PairSource.read."""
        self._examine()
        sides = (read_lines(path, limit=self.limit) for path in self.paths)
        for source, target in zip(*sides, strict=True):
            yield Pair(source, target)


T = TypeVar("T")


def in_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items; the last may be shorter."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
