"""Parallel corpora: the options that all kinds share, and the sources that a corpus consists of."""

import hashlib
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tolka.errors import ConfigError
from tolka.options.registry import Registry
from tolka.options.settings import setting
from tolka.system.number_format import count_text
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair, PairSource, PairStream, Swapped

Entry = str | list[str] | dict[str, str | list[str]]
"""A text: a prefix, file or pattern; [SOURCE,TARGET], two files; [FILE,COLUMN,COLUMN], a file and its columns; or
{text: any of these, source: CODE, target: CODE}, a text with languages of its own."""
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
    """above 1 small texts, or else directions, are drawn from more often than by size: size ** (1 / temperature)"""
    both_directions: bool = False
    """train each text in the opposite direction as well, and validate and test it: one model for both"""
    glossary: str = setting("", literal=True, any_bytes=True)
    """glossary whose terms are training pairs as well: TSV, CSV, XLSX or TBX, as for search.glossary"""
    like: str = setting("", needs=("run.init_from", "a model to start from"), literal=True)
    """the known language whose tag that of a new one begins as, new to the model in run.init_from; '' = the nearest"""

    def __post_init__(self) -> None:
        _check_direction(Direction(self.source, self.target), "corpus.source", "corpus.target")
        for key in ("train", "valid", "test"):
            for entry in getattr(self, key, ()):
                self._check_languages(entry, key)
        if not self.has_usual_direction:
            # Nobody has typed them: a run, and what describes it, is named after the first direction.
            for side, code in zip(("source", "target"), self.direction, strict=True):
                object.__setattr__(self, side, code)
        if self.glossary and (self.is_of_several_directions or self.temperature != 1):
            raise ConfigError("corpus.glossary is for a text of one direction, without corpus.temperature")
        if self.temperature < 1:
            raise ConfigError(f"corpus.temperature ({self.temperature:g}) must be at least 1 (as long as each text is)")
        if self.weights and self.temperature != 1:
            raise ConfigError("corpus.weights and corpus.temperature both say how the texts are mixed: set one of them")
        if self.weights and (min(self.weights) < 0 or not sum(self.weights)):
            raise ConfigError(f"corpus.weights ({self.weights}) must be 0 or more, and not all of them 0")

    def _check_languages(self, entry: Entry, key: str) -> None:
        """Raise ConfigError for an entry whose languages are not named, or not as they should be."""
        if isinstance(entry, dict):
            where = f"corpus.{key} ({as_typed(entry)})"
            # With one language alone the other would be the usual one, which nobody has typed.
            is_half = ("source" in entry) != ("target" in entry)
            if set(entry) - {"text", "source", "target"} or not entry.get("text") or is_half:
                raise ConfigError(f"{where} must be {{text: PREFIX OR FILE, source: CODE, target: CODE}}")
            _check_direction(self.split_entry(entry)[1], f"{where}: source", "target")
        # Nobody has typed corpus.source and corpus.target where each training text has its own.
        elif key != "train" and not self.has_usual_direction and not SetSize.of(key, [entry]):
            raise ConfigError(
                f"corpus.{key} ({as_typed(entry)}) does not say its languages, as the texts of corpus.train do: type "
                + shlex.quote(f"corpus.{key}=[{as_typed({'text': entry, **self.direction._asdict()})}]")
            )

    def split_entry(self, entry: Entry) -> tuple[str | list[str], Direction]:
        """Return an entry's text and its direction: its own, or that of corpus.source and corpus.target."""
        if not isinstance(entry, dict):
            return entry, Direction(self.source, self.target)
        return entry["text"], Direction(str(entry.get("source", self.source)), str(entry.get("target", self.target)))

    @property
    def has_usual_direction(self) -> bool:
        """Whether corpus.source and corpus.target are the languages of a training text."""
        entries: Sequence[Entry] = getattr(self, "train", ())
        return not entries or any(not isinstance(each, dict) or not {"source", "target"} <= {*each} for each in entries)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """From which languages into which the model is trained, in the order of the texts."""
        usual = Direction(self.source, self.target)
        own = [self.split_entry(each)[1] for each in getattr(self, "train", ())] or [usual]
        return tuple(dict.fromkeys([*own, *([each.swapped for each in own] if self.both_directions else [])]))

    @property
    def direction(self) -> Direction:
        """The first of the directions, and mostly the only one."""
        return self.directions[0]

    @property
    def is_of_several_directions(self) -> bool:
        """Whether one model is trained for several directions."""
        return len(self.directions) > 1

    @property
    def several(self) -> bool:
        """Whether there are several training texts, or one that is read in both directions."""
        return len(getattr(self, "train", ())) != 1 or self.both_directions

    def open(self) -> "Corpus":
        """Find the data, and check the weights against it; DataError or ConfigError if something is missing.

        With both_directions, `Corpus.with_opposite` adds the opposite ones, once sets are held out.
        """
        corpus = self.find()
        numbers, texts = len(self.weights), len(corpus.entries)
        if numbers not in (0, texts):
            raise ConfigError(
                f"corpus.weights has {count_text(numbers, 'number')} and corpus.train {count_text(texts, 'text')}: "
                "give one for each (all that a pattern stands for is one)"
            )
        return corpus

    @abstractmethod
    def find(self) -> "Corpus":
        """Return the corpus that these options describe; ConfigError or DataError if they are not there."""


def _check_direction(direction: Direction, source_key: str, target_key: str) -> None:
    """Raise ConfigError for codes that cannot be those of two languages."""
    for key, code in zip((source_key, target_key), direction, strict=True):
        if not code or set(code) & set("/\\\0 \t\n"):
            example = f", as in {key}=en" if key.startswith("corpus.") and " " not in key else ""
            raise ConfigError(f"{key} ('{code}') must be a language code{example}")
    if direction.source == direction.target:
        raise ConfigError(f"{source_key} and {target_key} are both '{direction.source}'; they must differ")


def as_typed(entry: Entry) -> str:
    """Return an entry as it is typed."""
    if isinstance(entry, dict):
        return f"{{{', '.join(f'{key}: {as_typed(value)}' for key, value in entry.items())}}}"
    return entry if isinstance(entry, str) else f"[{','.join(entry)}]"


CORPORA: Registry[CorpusConfig] = Registry("corpus", "tolka.text.corpora", without=("sacrebleu_sets",))


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
    def entry_directions(self) -> list[Direction]:
        """The direction of each entry of corpus.train."""
        return [entry[0].direction for entry in self.entries]

    @property
    def directions(self) -> list[Direction]:
        """The directions of the training text, each once, in the order of the entries."""
        return list(dict.fromkeys(self.entry_directions))

    @property
    def sole_direction(self) -> Direction:
        """The direction of the training text; unknown where it has several."""
        return self.directions[0] if len(self.directions) == 1 else UNKNOWN

    def seen_in(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return the pairs, and of several directions the same with their sides exchanged.

        What is held out as a source in one direction may be a target in another.
        """
        listed = list(pairs)
        return [*listed, *(pair.swapped for pair in listed)] if len(self.directions) > 1 else listed

    def with_opposite(self) -> "Corpus":
        """Return the corpus with all its texts in the opposite direction as well, after the others."""
        valid, tests = ([*texts, *map(Swapped, texts)] for texts in (self.valid, self.tests))
        entries = [*self.entries, *(list[PairSource](map(Swapped, entry)) for entry in self.entries)]
        return replace(self, entries=entries, valid=valid, tests=tests)

    def named_by_direction(self) -> "Corpus":
        """Return the corpus; of several directions, with a direction in the name of each of its texts."""
        sources = [*self.train, *self.valid, *self.tests]
        if len({source.direction for source in sources}) > 1:
            for source in sources:
                source.name = f"{source.name}.{source.direction.code}"
        return self

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
