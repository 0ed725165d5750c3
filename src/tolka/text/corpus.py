"""Parallel corpora: where their pairs come from. They stream: nothing here holds a corpus in memory."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from tolka.errors import ConfigError, DataError
from tolka.registry import Registry
from tolka.text.lines import count_and_digest, read_lines


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
        """All pairs, in order; DataError with file and line."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the content does."""

    @abstractmethod
    def count(self) -> int:
        """How many pairs `read` will give, for progress bars: about, where only reading would tell."""


class ParallelFiles(PairSource):
    """Two files, sentence by sentence; checked for equal line counts before the first pair is given."""

    def __init__(self, source: Path, target: Path, name: str) -> None:
        self.name = name
        self.paths = (source, target)
        self._facts: tuple[int, str] | None = None

    def _examine(self) -> tuple[int, str]:
        """Line count and digest of both; DataError when they cannot be a corpus."""
        if self._facts is None:
            source, target = self.paths
            (count, source_digest), (target_count, target_digest) = count_and_digest(source), count_and_digest(target)
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
        for source, target in zip(read_lines(self.paths[0]), read_lines(self.paths[1]), strict=True):
            yield Pair(source, target)


@dataclass(frozen=True)
class CorpusConfig(ABC):
    """Options that every kind of corpus has."""

    source: str = "en"
    """language code of the source; a string, so write 'no' with its quotes in YAML"""
    target: str = "ko"
    """language code of the target; decides how BLEU splits words"""
    check: bool = False
    """whether a run begins with what mt-train --check does, into its log and check.html; it trains whatever is found"""

    def __post_init__(self) -> None:
        for key in ("source", "target"):
            code = getattr(self, key)
            if not code or set(code) & set("/\\\0 \t\n"):
                raise ConfigError(f"corpus.{key} ('{code}') must be a language code, as in corpus.{key}=en")
        if self.source == self.target:
            raise ConfigError(f"corpus.source and corpus.target are both '{self.source}'; they must differ")

    @abstractmethod
    def open(self) -> "Corpus":
        """Find the data; DataError or ConfigError with what is missing."""


CORPORA: Registry[CorpusConfig] = Registry("corpus", "tolka.text.corpora")


@dataclass(frozen=True)
class Corpus:
    """What to train on, to validate on, and the test sets, each scored on its own."""

    train: list[PairSource]
    valid: list[PairSource]
    tests: list[PairSource] = field(default_factory=list)

    def fingerprint(self) -> str:
        """Changes when the training text does."""
        return hashlib.sha256("".join(source.fingerprint() for source in self.train).encode()).hexdigest()


T = TypeVar("T")


def in_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items; the last may be shorter."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
