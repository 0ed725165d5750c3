"""Parallel corpora: where their pairs come from. They stream: nothing here holds a corpus in memory."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from tolka.checks import at_least
from tolka.errors import ConfigError, DataError
from tolka.registry import Registry
from tolka.text.lines import LINE_LIMIT, LineLimit, count_and_digest, read_lines

_LONGEST_NUMBER = 20


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


@dataclass(frozen=True)
class SetSize:
    """How much of the training text becomes a held-out set: a share of the pairs, or so many; with neither, `auto`.

    asked: as it was typed.
    """

    asked: str
    share: float = 0.0
    pairs: int = 0

    @classmethod
    def of(cls, key: str, entries: Sequence[str]) -> "SetSize | None":
        """What corpus.<key> asks for; None where it names texts. ConfigError for a number that is no size."""
        asked = entries[0] if len(entries) == 1 else ""
        if asked == "auto":
            return cls(asked)
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", asked) or len(asked) > _LONGEST_NUMBER:
            return None
        if asked.isdecimal() and int(asked):
            return cls(asked, pairs=int(asked))
        if not 0 < float(asked) <= 0.5:
            raise ConfigError(
                f"corpus.{key} ({asked}) must be the name of a text, or what is set aside of the training text: a "
                "share of it (0.01, at most 0.5), a number of pairs (500), or auto"
            )
        return cls(asked, share=float(asked))


@dataclass(frozen=True)
class CorpusConfig(ABC):
    """Options that every kind of corpus has."""

    source: str = "en"
    """language code of the source; a string, so write 'no' with its quotes in YAML"""
    target: str = "ko"
    """language code of the target; decides how BLEU splits words"""
    weights: list[float] = field(default_factory=list)
    """of several training texts, the share of an epoch that each makes up: [3,1] = 3/4 and 1/4; [] = by length"""
    temperature: float = 1.0
    """above 1 small training texts are drawn from more often than their size says: size ** (1 / temperature)"""
    caps: list[int] = field(default_factory=list)
    """the most different pairs of each training text in an epoch, others in each; 0 = all; weights mix what is left"""
    check: bool = False
    """whether a run begins with what mt-train --check does, into its log and check.html; it trains whatever is found"""
    max_line_bytes: int = LineLimit.max_bytes
    """ceiling on a line of a text file, or on one text of a row: a longer one is an error, not a sentence"""

    def __post_init__(self) -> None:
        for key in ("source", "target"):
            code = getattr(self, key)
            if not code or set(code) & set("/\\\0 \t\n"):
                raise ConfigError(f"corpus.{key} ('{code}') must be a language code, as in corpus.{key}=en")
        if self.source == self.target:
            raise ConfigError(f"corpus.source and corpus.target are both '{self.source}'; they must differ")

        at_least(self, "corpus", 1, "max_line_bytes")
        if self.temperature < 1:
            raise ConfigError(f"corpus.temperature ({self.temperature:g}) must be at least 1 (as long as each text is)")
        if self.weights and self.temperature != 1:
            raise ConfigError("corpus.weights and corpus.temperature both say how the texts are mixed: set one of them")
        if self.weights and (min(self.weights) < 0 or not sum(self.weights)):
            raise ConfigError(f"corpus.weights ({self.weights}) must be 0 or more, and not all of them 0")
        if self.caps and min(self.caps) < 0:
            raise ConfigError(f"corpus.caps ({self.caps}) must be 0 (all) or more")

    @property
    def line_limit(self) -> LineLimit:
        """max_line_bytes, for those who read."""
        return LineLimit(self.max_line_bytes, "corpus.max_line_bytes")

    def open(self) -> "Corpus":
        """Find the data; DataError or ConfigError with what is missing."""
        corpus = self.find()
        for key in ("weights", "caps"):
            given, texts = len(getattr(self, key)), len(corpus.entries)
            if given not in (0, texts):
                raise ConfigError(
                    f"corpus.{key} has {given} numbers and corpus.train {texts} texts: give one for each (all that a "
                    "pattern stands for is one)"
                )
        return corpus

    @abstractmethod
    def find(self) -> "Corpus":
        """What `open` gives, whatever weights and caps say."""


CORPORA: Registry[CorpusConfig] = Registry("corpus", "tolka.text.corpora")


@dataclass(frozen=True)
class Corpus:
    """What to train on, to validate on, and the test sets, each scored on its own.

    entries: the sources that each entry of corpus.train stands for, together one part of the text. stream: what is
    trained on in their stead, where they are but its beginning, `buffer` pairs at a time. sizes: of the sets ("valid",
    "test") that are to be taken out of the training text, by `tolka.text.set_aside`.
    """

    entries: list[list[PairSource]]
    valid: list[PairSource]
    tests: list[PairSource] = field(default_factory=list)
    stream: PairStream | None = None
    buffer: int = 0
    sizes: Mapping[str, SetSize] = field(default_factory=dict)

    @property
    def train(self) -> list[PairSource]:
        """All that is trained on."""
        return [source for entry in self.entries for source in entry]

    @property
    def entry_names(self) -> list[str]:
        """A name for each entry: its source's, or the first one's and how many more."""
        return [entry[0].name + (f" and {len(entry) - 1} more" if len(entry) > 1 else "") for entry in self.entries]

    def fingerprint(self) -> str:
        """Changes when the training text does, or its parts."""
        parts = ["\n".join(source.fingerprint() for source in entry) for entry in self.entries]
        return hashlib.sha256("\n\n".join(parts).encode()).hexdigest()


T = TypeVar("T")


def in_chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items; the last may be shorter."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
