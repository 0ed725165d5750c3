"""What mt-translate reads: lines or the rows of a column, and the beginnings of their translations."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import IO

from tolka.errors import ConfigError, DataError
from tolka.system.number_format import counted
from tolka.system.progress import say
from tolka.text.file_types import document_kind
from tolka.text.lines import (
    LineLimit,
    count_ahead,
    count_and_digest,
    decode_lines,
    near_path,
    read_lines,
    user_path,
    without_compression,
)
from tolka.text.one_column import column_of
from tolka.text.pairs import Pair, PairSource, ParallelFiles
from tolka.text.windows import ArrivingLines, full_windows, is_still_written
from tolka.translation.input_output import TABLES, InputConfig

_STDIN = Path("stdin")


def check_files(files: Sequence[Path]) -> None:
    """Raise DataError for files that cannot be read, or for none where standard input is closed."""
    for path in files:
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a text; models that translate together are joined by commas")
        if path.exists() and not path.is_file():
            raise DataError(
                f"{path} is a pipe or a device, and files are read twice: give it as standard input, "
                f"mt-translate MODEL < {path}"
            )
        if not path.is_file():
            is_sentence = " " in str(path) or not (path.suffix or path.parent.name)
            hint = '; to translate a sentence: echo "..." | mt-translate MODEL' if is_sentence else ""
            hint = near_path(path) or hint
            raise DataError(f"{path}: there is no such file{hint}")
    if not files and sys.stdin is None:
        raise DataError("standard input is closed; name a file to translate")


class TextsToTranslate:
    """The texts of files, or of standard input where there are none; the target of each is how it shall begin."""

    def __init__(self, files: Sequence[Path], config: InputConfig, limit: LineLimit) -> None:
        """ConfigError where the format of a file is not known, DataError where there is no file of beginnings."""
        self._config, self._limit = config, limit
        self._files = [(path, self._kind(path)) for path in files]
        self._stdin_kind = "" if files else self._kind(None)
        self._prefix = user_path(config.prefix) if config.prefix else None
        self._flaws = Counter[str]()
        self._begun = list[tuple[int, Path, str]]()  # files read so far, after how many texts, and of which format
        if self._prefix is not None and not self._prefix.is_file():
            raise DataError(f"input.prefix: there is no file {self._prefix}")

    def _kind(self, path: Path | None) -> str:
        """Return the format of a file, or of standard input."""
        kind = self._config.format
        if kind == "auto":
            kind = without_compression(path).suffix.lower().removeprefix(".") if self._config.column and path else ""
            if self._config.column and kind not in TABLES:
                raise ConfigError(
                    f"input.column={self._config.column} needs to know what {path or 'standard input'} is: add "
                    "input.format=tsv, csv, jsonl or parquet"
                )
        if kind == "parquet" and path is None:
            raise ConfigError("input.format=parquet cannot be read from standard input: name the file")
        return kind or "text"

    def count(self) -> int | None:
        """Return how many texts there are, for progress; None where only the end of the stream tells.

        DataError for a file that is no text, and where the beginnings are as many as the texts of files are not.
        """
        if not self._files:
            if self.are_still_written or not sys.stdin.buffer.seekable():
                return None
            return count_ahead(sys.stdin.buffer)
        count = sum(
            count_and_digest(path, self._limit)[0] if kind == "text" else self._column(path, kind).count()
            for path, kind in self._files
        )
        if self._prefix is not None and all(kind == "text" for _, kind in self._files):
            beginnings = count_and_digest(self._prefix, self._limit)[0]
            if beginnings != count:
                raise self._unequal(f"{counted(beginnings, 'line')}, and the texts to translate are {count}")
        return count

    def note_documents(self) -> None:
        """Print a note for each file that looks like a document and is translated as text."""
        for path, kind in dict.fromkeys(self._files):
            name, markup = document_kind(without_compression(path))
            if name and kind == "text":
                is_table = without_compression(path).suffix.lower().removeprefix(".") in TABLES
                advice = "; input.column=NAME translates one column alone" if is_table else ""
                say(
                    f"note: {path} looks like {name}: every line of it is translated as text, {markup} included{advice}"
                )

    def read(self, stream: IO[bytes] | None = None) -> Iterator[Pair]:
        """Yield the texts. stream: standard input; by default that of Python."""
        texts = self._texts(stream)
        if self._prefix is None:
            yield from texts
            return
        beginnings = read_lines(self._prefix, limit=self._limit)
        for number, (pair, prefix) in enumerate(zip_longest(texts, beginnings)):
            if pair is None:
                raise self._unequal(f"more lines than the {counted(number, 'text')} to translate")
            if prefix is None:
                raise self._unequal(f"only {counted(number, 'line')}, and the texts to translate are more")
            yield Pair(pair.source, prefix)

    def place(self, number: int, of_prefix: bool) -> str:
        """Return where a text that was read stands, or the beginning of its translation. number: from 1."""
        if of_prefix:
            return f"row {number}" if self._prefix is None else f"{self._prefix}:{number}"
        before, path, kind = next(each for each in reversed(self._begun) if each[0] < number)
        return f"{path}:{number - before}" if kind == "text" else f"{path}, row {number - before}"

    def conclude(self) -> None:
        """Print a note of rows that may not be what their writer meant."""
        for flaw, count in self._flaws.items():
            if count:
                say(
                    f"note: {counted(count, 'row')} {'has' if count == 1 else 'have'} {flaw}; each was translated as "
                    "one line"
                )

    def _unequal(self, words: str) -> DataError:
        return DataError(f"{self._prefix} has {words}: line by line it says how each translation begins (input.prefix)")

    def _texts(self, stream: IO[bytes] | None) -> Iterator[Pair]:
        """Yield the texts, with beginnings from a column."""
        count = 0
        for path, kind in self._files or [(_STDIN, self._stdin_kind)]:
            self._begun.append((count, path, kind))
            given = None if self._files else stream or sys.stdin.buffer
            for pair in self._rows(path, kind, given):
                count += 1
                yield pair

    def _rows(self, path: Path, kind: str, stream: IO[bytes] | None) -> Iterator[Pair]:
        if kind == "text":
            lines = (
                decode_lines(stream, str(path), limit=self._limit) if stream else read_lines(path, limit=self._limit)
            )
            yield from (Pair(line, "") for line in lines)
            return
        for pair in self._column(path, kind, stream).read():
            self._flaws[pair.flaw] += bool(pair.flaw)
            yield pair if self._config.prefix_column else Pair(pair.source, "")

    def _column(self, path: Path, kind: str, stream: IO[bytes] | None = None) -> PairSource:
        return column_of(path, kind, self._config.column, self._config.prefix_column, self._limit, stream)

    @property
    def are_still_written(self) -> bool:
        """Whether somebody may be writing them, and waiting for an answer."""
        return not self._files and is_still_written(sys.stdin)

    def arriving(self, size: int) -> Iterator[list[Pair]]:
        """Yield the texts that have arrived, up to `size`, as soon as there are any."""
        # A reader of its own: Python ends with a fatal error where a thread still waits inside that of sys.stdin.
        stream = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (until the command ends)
        return ArrivingLines(self.read(stream), size).windows()


class GivenTranslations:
    """Two files to score line by line: sources, and translations of them."""

    def __init__(self, files: Sequence[Path], config: InputConfig, limit: LineLimit) -> None:
        """ConfigError unless there are two files, of plain text."""
        if len(files) != 2:
            raise ConfigError(f"--score takes two files, SOURCE and TARGET, line by line, and here are {len(files)}")
        if config != InputConfig():
            raise ConfigError("--score reads two files of lines: leave out the settings of input.*")
        self._sources = files[0]
        self._pairs = ParallelFiles(files[0], files[1], files[0].name, limit)

    def place(self, number: int, of_prefix: bool) -> str:
        """Return where a pair stands. number: from 1."""
        return f"{self._sources}:{number}"

    def conclude(self) -> None:
        """Nothing is to be told."""

    def count(self) -> int:
        """Return the number of pairs; DataError where the files have not as many lines."""
        return self._pairs.count()

    are_still_written = False

    def arriving(self, size: int) -> Iterator[list[Pair]]:
        """Yield the pairs in groups; they are files, so that none is waited for."""
        return full_windows(self.read(), size)

    def read(self) -> Iterator[Pair]:
        """Yield sources and translations."""
        return self._pairs.read()
