"""The contract of readers of files with both sides, and their registry."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from tolka.errors import ConfigError, DataError
from tolka.options.suggestions import did_you_mean
from tolka.text.direction import Direction
from tolka.text.lines import LINE_LIMIT, LineLimit, Repair, count_and_digest, digest_of, read_lines
from tolka.text.pairs import PairSource

SIDES: dict[str, Callable[[Path, Path, str], PairSource]] = {}
"""File extension of a side -> the pairs of two such files, and what they are called; all others are files of lines."""


@dataclass(frozen=True)
class ColumnSetting:
    """The setting that names the columns, and how it does, for messages: by names, or by numbers."""

    key: str = "corpus.columns"
    names: str = "Name two of them with 'corpus.columns=[source,target]'"
    numbers: str = (
        "or, where the first line is a pair already, their numbers: 'corpus.columns=[1,2]', or for this file alone "
        "'corpus.train=[[FILE,1,2]]'"
    )


class BothSides(PairSource):
    """One file with sources and targets. has_columns: whether corpus.columns chooses among several texts of a row."""

    has_columns = True
    # Part of the fingerprint, so that text that another version has read is prepared again.
    version = ""
    """number of the reader's rules, raised with each change of what it makes of a file"""

    def __init__(
        self, path: Path, name: str, direction: Direction, columns: Sequence[str], limit: LineLimit = LINE_LIMIT
    ) -> None:
        """columns: corpus.columns; if empty, the reader finds them. limit: for a line, and for a text."""
        self.name, self.path, self.direction, self.columns = name, path, direction, list(columns)
        self.limit = limit
        self.repair: Repair | None = None  # if set, a line that is not a row is a flawed pair, not an error
        self.stream: IO[bytes] | None = None  # if set, it is read, once, and `path` is only its name
        self.keeps_blank_lines = False  # whether a blank line is a pair of blank texts also where it is not a row
        self.setting = ColumnSetting()
        self._digest, self._count = "", 0  # of the file, and the number of its lines; once they are known
        if self.columns and len(self.columns) != 2:
            raise ConfigError(
                f"corpus.columns ({', '.join(self.columns)}) must name two columns, the source's and the target's"
            )
        if self.columns and not self.has_columns:
            raise ConfigError(f"{self.path} has no columns: leave out corpus.columns")

    def _text_lines(self) -> Iterator[str]:
        return read_lines(self.path, self.repair, self.limit, self.stream)

    def fingerprint(self) -> str:
        # Counting the lines has read the file already, unless the reader counts otherwise.
        self._digest = self._digest or digest_of(self.path)
        parts = [type(self).__name__ + self.version, self._digest, *self.direction, *self.columns]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def count(self) -> int:
        """Return the number of lines; DataError when the file is empty."""
        if not self._count:
            self._count, self._digest = count_and_digest(self.path, self.limit)
        if not self._count:
            raise DataError(f"{self.path}: the file is empty")
        return self._count


FORMATS: dict[str, type[BothSides]] = {}
"""File extension -> reader; see `register_reader`."""
R = TypeVar("R", bound=type[BothSides])


def register_reader(*endings: str) -> Callable[[R], R]:
    """Return a class decorator that registers the class for these file extensions (".tsv")."""

    def add(reader: R) -> R:
        FORMATS.update(dict.fromkeys(endings, reader))
        return reader

    return add


def check_columns(wanted: Iterable[str], names: Collection[str], place: str, advice: str) -> None:
    """Raise DataError for a column that is not among the names. place: file and line. advice: what to type instead."""
    for name in wanted:
        if name not in names:
            raise DataError(f"{place}: no column is called '{name}'.{did_you_mean(name, names)} {advice}")


def texts_of(cells: Any, columns: Iterable[str], place: str, limit: LineLimit) -> list[str]:
    """Return the texts in these columns of a row, or in its "translation", each as one line; "" where there is none.

    place: of the row. DataError for what is not text, and for a text that is too long.
    """
    if not isinstance(cells, dict | None):
        raise DataError(f"{place}: 'translation' holds {cells!r:.60}, not a text of each language")
    texts = []
    for column in columns:
        text = (cells or {}).get(column) or ""
        if not isinstance(text, str):
            raise DataError(f"{place}: '{column}' holds {text!r:.60}, which is not text")
        limit.check(text, place, f"'{column}'")
        texts.append(one_line(text))
    return texts


def one_line(text: str) -> str:
    """Replace line feeds and the spaces around them by one space: a sentence is one line."""
    return " ".join(part for part in map(str.strip, text.split("\n")) if part) if "\n" in text else text
