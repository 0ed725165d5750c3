"""Parallel corpora: the options that all kinds share, and the sources that a corpus consists of."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tolka.errors import ConfigError
from tolka.options.registry import Registry
from tolka.options.settings import setting
from tolka.system.number_format import counted
from tolka.text.direction import Direction
from tolka.text.pairs import PairSource, PairStream

_MAX_SIZE_CHARACTERS = 20  # longer digits are the name of a text


@dataclass(frozen=True)
class SetSize:
    """How much of the training text becomes a held-out set: a share, a number of pairs, or `auto`.

    value: the setting as it was typed.
    """

    value: str
    share: float = 0.0
    pairs: int = 0

    @classmethod
    def of(cls, key: str, entries: Sequence[object]) -> "SetSize | None":
        """Return the size in corpus.<key>; None if it names texts. ConfigError for an invalid size."""
        value = entries[0] if len(entries) == 1 and isinstance(entries[0], str) else ""
        if value == "auto":
            return cls(value)
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) or len(value) > _MAX_SIZE_CHARACTERS:
            return None
        if value.isdecimal() and int(value):
            return cls(value, pairs=int(value))
        if not 0 < float(value) <= 0.5:
            raise ConfigError(
                f"corpus.{key} ({value}) must be the name of a text, or what is set aside of the training text: a "
                "share of it (0.01, at most 0.5), a number of pairs (500), or auto"
            )
        return cls(value, share=float(value))


@dataclass(frozen=True)
class CorpusConfig(ABC):
    """Options of every kind of corpus."""

    source: str = setting("en", literal=True)
    """language code of the source; a string, so write 'no' with its quotes in YAML"""
    target: str = setting("ko", literal=True)
    """language code of the target; decides how BLEU splits words"""
    weights: list[float] = setting(default_factory=list, needs=("corpus.several", "several texts in corpus.train"))
    """of several training texts, the share of an epoch that each makes up: [3,1] = 3/4 and 1/4; [] = by length"""
    temperature: float = setting(1.0, needs=("corpus.several", "several texts in corpus.train"))
    """above 1 small training texts are drawn from more often than their size says: size ** (1 / temperature)"""

    def __post_init__(self) -> None:
        for key in ("source", "target"):
            code = getattr(self, key)
            if not code or set(code) & set("/\\\0 \t\n"):
                raise ConfigError(f"corpus.{key} ('{code}') must be a language code, as in corpus.{key}=en")
        if self.source == self.target:
            raise ConfigError(f"corpus.source and corpus.target are both '{self.source}'; they must differ")
        if self.temperature < 1:
            raise ConfigError(f"corpus.temperature ({self.temperature:g}) must be at least 1 (as long as each text is)")
        if self.weights and self.temperature != 1:
            raise ConfigError("corpus.weights and corpus.temperature both say how the texts are mixed: set one of them")
        if self.weights and (min(self.weights) < 0 or not sum(self.weights)):
            raise ConfigError(f"corpus.weights ({self.weights}) must be 0 or more, and not all of them 0")

    @property
    def direction(self) -> Direction:
        """From which language into which the texts are translated."""
        return Direction(self.source, self.target)

    @property
    def several(self) -> bool:
        """Whether corpus.train is not a single text."""
        return len(getattr(self, "train", ())) != 1

    def open(self) -> "Corpus":
        """Find the data, and check the weights against it; DataError or ConfigError if something is missing."""
        corpus = self.find()
        numbers, texts = len(self.weights), len(corpus.entries)
        if numbers not in (0, texts):
            raise ConfigError(
                f"corpus.weights has {counted(numbers, 'number')} and corpus.train {counted(texts, 'text')}: give one "
                "for each (all that a pattern stands for is one)"
            )
        return corpus

    @abstractmethod
    def find(self) -> "Corpus":
        """Return the corpus that these options describe; ConfigError or DataError if they are not there."""


CORPORA: Registry[CorpusConfig] = Registry("corpus", "tolka.text.corpora")


@dataclass(frozen=True)
class Corpus:
    """Training, validation and test texts; each test set is scored on its own.

    entries: the sources of each entry of corpus.train. stream: what is trained on instead, `buffer` pairs at a time, of
    which the entries are then the beginning. sizes: of the sets ("valid", "test") to hold out of the training text.
    """

    entries: list[list[PairSource]]
    valid: list[PairSource]
    tests: list[PairSource] = field(default_factory=list)
    stream: PairStream | None = None
    buffer: int = 0
    sizes: Mapping[str, SetSize] = field(default_factory=dict)

    @property
    def train(self) -> list[PairSource]:
        """The sources of all entries of corpus.train, in order."""
        return [source for entry in self.entries for source in entry]

    @property
    def entry_names(self) -> list[str]:
        """A name for each entry: its source's, or the first one's and how many more."""
        return [entry[0].name + (f" and {len(entry) - 1} more" if len(entry) > 1 else "") for entry in self.entries]

    def fingerprint(self) -> str:
        """Return a digest that changes with the training text or its parts."""
        parts = ["\n".join(source.fingerprint() for source in entry) for entry in self.entries]
        return hashlib.sha256("\n\n".join(parts).encode()).hexdigest()
