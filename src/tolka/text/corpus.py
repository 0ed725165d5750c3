"""Parallel corpora: where their pairs come from, and what cleaning leaves out.

Pairs stream: nothing here holds a corpus in memory. They are kept or dropped together, never one side alone.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tolka.checks import at_least
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
    max_characters: int = 2000
    """training pairs with a longer side are left out, and counted"""
    drop_duplicates: bool = False
    """leave out training pairs that came before, word for word, and count them"""

    def __post_init__(self) -> None:
        for key in ("source", "target"):
            code = getattr(self, key)
            if not code or set(code) & set("/\\\0 \t\n"):
                raise ConfigError(f"corpus.{key} ('{code}') must be a language code, as in corpus.{key}=en")
        if self.source == self.target:
            raise ConfigError(f"corpus.source and corpus.target are both '{self.source}'; they must differ")
        at_least(self, "corpus", 1, "max_characters")

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


def read_split(sources: list[PairSource], what: str) -> tuple[list[Pair], Counter[str]]:
    """A validation or test set in memory, and how many pairs were left out for a blank side.

    Nothing else is ever left out of what is scored. DataError when nothing remains.
    """
    counts: Counter[str] = Counter()
    pairs = list(clean((pair for source in sources for pair in source.read()), counts))
    if not pairs:
        raise DataError(f"no pair of {what} is left after cleaning ({summary(counts)}); check that file")
    return pairs, counts


def clean(
    pairs: Iterator[Pair], counts: Counter[str], max_characters: int | None = None, drop_duplicates: bool = False
) -> Iterator[Pair]:
    """The pairs worth keeping, stripped of surrounding blanks; `counts` gets "kept" and each reason to drop one.

    Duplicates are recognised by 8 bytes a pair.
    """
    seen: set[bytes] = set()
    for pair in pairs:
        pair = Pair(pair.source.strip(), pair.target.strip(), pair.flaw)
        reason = pair.flaw or _reason_to_drop(pair, max_characters)
        if not reason and drop_duplicates:
            mark = hashlib.blake2b(f"{pair.source}\n{pair.target}".encode(), digest_size=8).digest()
            reason = "duplicate" if mark in seen else ""
            seen.add(mark)
        counts[reason or "kept"] += 1
        if not reason:
            yield pair


def _reason_to_drop(pair: Pair, max_characters: int | None) -> str:
    if not pair.source or not pair.target:
        return "blank source" if pair.target else "blank target" if pair.source else "blank on both sides"
    if max_characters is not None and max(len(pair.source), len(pair.target)) > max_characters:
        return f"over {max_characters} characters"
    return ""


def summary(counts: Counter[str]) -> str:
    """One phrase: '29000 pairs, 28998 kept, 2 left out: 2 blank source'."""
    dropped = {reason: n for reason, n in counts.items() if reason != "kept" and n}
    text = f"{counts.total()} pairs, {counts['kept']} kept"
    if dropped:
        text += f", {sum(dropped.values())} left out: " + ", ".join(f"{n} {why}" for why, n in sorted(dropped.items()))
    return text
