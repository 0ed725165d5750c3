"""The input of a job: texts of documents or of a stream, and the beginnings of their translations."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import IO, TextIO

from tolka.documents.base import DOCUMENTS, InputFile, Layout, LineFile
from tolka.documents.plain_text import PlainText
from tolka.errors import ConfigError, DataError, all_of
from tolka.jobs.options import InputConfig
from tolka.system.number_format import count_text
from tolka.text.file_types import document_kind
from tolka.text.lines import (
    LineLimit,
    count_ahead,
    count_and_digest,
    held_files,
    near_path,
    read_lines,
    user_path,
    without_compression,
)
from tolka.text.pairs import Pair, ParallelFiles
from tolka.text.windows import arriving_windows, is_still_written


def check_files(files: Sequence[Path], stdin: TextIO | None, folders: bool = False) -> None:
    """Raise DataError for files that cannot be read, or for none where standard input is closed.

    folders: whether there may be folders of documents.
    """

    def check(path: Path) -> None:
        if path.is_dir() and folders:
            return
        if path.is_dir():
            raise DataError(
                f"{path} is a folder{held_files(path)}; to translate the documents in it: -o FOLDER; models that "
                "translate together are joined by commas"
            )
        if path.exists() and not path.is_file():
            raise DataError(
                f"{path} is a pipe or a device, and files are read twice: give it as standard input, "
                f"mt-translate MODEL < {shlex.quote(str(path))}"
            )
        if not path.is_file():
            # Somebody may have typed a sentence where a file belongs.
            is_sentence = " " in str(path) or not (path.suffix or path.parent.name)
            hint = '; to translate a sentence: echo "..." | mt-translate MODEL' if is_sentence else ""
            raise DataError(f"{path}: there is no such file{near_path(path) or hint}")

    all_of(*(partial(check, path) for path in files))
    if not files and stdin is None:
        raise DataError("standard input is closed; name a file to translate")


class GivenTranslations(PlainText):
    """Two files to score line by line: sources, and translations of them."""

    def __init__(self, files: Sequence[Path], config: InputConfig, limit: LineLimit) -> None:
        """ConfigError unless there are two files, of plain text."""
        if len(files) != 2:
            raise ConfigError(f"--score takes two files, SOURCE and TARGET, line by line, and here are {len(files)}")
        if config != InputConfig():
            raise ConfigError("--score reads two files of lines: leave out the settings of input.*")
        super().__init__(files[0], limit=limit)
        self._pairs = ParallelFiles(files[0], files[1], files[0].name, limit)

    def texts(self) -> Iterator[Pair]:
        return (Pair(pair.source, pair.target) for pair in self._pairs.read())

    def count(self) -> int:
        return self._pairs.count()


class Texts:
    """The texts of files of lines, or of standard input without files.

    are_still_written: whether somebody may be writing the texts, and waiting for an answer.
    """

    def __init__(
        self,
        files: Sequence[Path],
        config: InputConfig,
        limit: LineLimit,
        stdin: TextIO | None,
        are_given: bool = False,
    ) -> None:
        """are_given: whether the second of two files has the translations of the first.

        ConfigError if the format of a file is not known, DataError if the file of prefixes is missing.
        """
        self._config, self._limit, self._stdin = config, limit, stdin
        buffer = stdin.buffer if stdin else None
        self._files: list[LineFile] = [GivenTranslations(files, config, limit)] if are_given else []
        named: Sequence[Path | None] = files or [None]
        for path in named if not are_given else ():
            kind = kind_of(path, config)
            assert issubclass(kind, LineFile), "a document is no file of lines"
            self._files.append(kind(path or Path("stdin"), Layout(config.column), limit, None if path else buffer))
        self._is_stream = not files
        self.are_still_written = not files and stdin is not None and is_still_written(stdin)
        self._prefix = user_path(config.prefix) if config.prefix else None
        self._flaws = Counter[str]()
        self._begun = list[tuple[int, LineFile]]()  # files read so far, each after the number of texts before it
        if self._prefix is not None and not self._prefix.is_file():
            raise DataError(f"input.prefix: there is no file {self._prefix}")

    def count(self) -> int | None:
        """Return the number of texts, for progress; None if only the end of a stream tells.

        DataError for a file that is not text, and for two parallel files with different numbers of lines.
        """
        if self._is_stream:
            # A file as standard input can be counted ahead; a pipe or terminal cannot.
            if self.are_still_written or self._stdin is None or not self._stdin.buffer.seekable():
                return None
            return count_ahead(self._stdin.buffer)
        count = sum(file.count() for file in self._files)
        if self._prefix is not None and not any(True in file.with_column for file in self._files):
            beginnings = count_and_digest(self._prefix, self._limit)[0]
            if beginnings != count:
                raise self._unequal(f"{count_text(beginnings, 'line')}, and the texts to translate are {count}")
        return count

    def notes(self) -> Iterator[str]:
        """Yield notes on files that may not be meant to be translated as text."""
        for file in self._files:
            path = without_compression(file.path)
            name, markup = document_kind(path)
            if markup and type(file) is PlainText:
                is_table = kind_of_ending(path, has_column=True) is not None
                advice = "; input.column=NAME translates one column alone" if is_table else ""
                yield (
                    f"{file.path} looks like {name}: every line of it is translated as text, {markup} included{advice}"
                )

    def read(self, stream: IO[bytes] | None = None) -> Iterator[Pair]:
        """Yield each text as the source of a pair, whose target is its translation, or the beginning of one.

        stream: standard input; by default that of Python.
        """
        texts = self._texts(stream)
        if self._prefix is None:
            yield from texts
            return
        beginnings = read_lines(self._prefix, limit=self._limit)
        for number, (pair, prefix) in enumerate(zip_longest(texts, beginnings)):
            if pair is None:
                raise self._unequal(f"more lines than the {count_text(number, 'text')} to translate")
            if prefix is None:
                raise self._unequal(f"only {count_text(number, 'line')}, and the texts to translate are more")
            yield Pair(pair.source, prefix)

    def place(self, number: int, of_prefix: bool) -> str:
        """Return the file and line of a text, or of the beginning of its translation. number: from 1."""
        if of_prefix and self._prefix is not None:
            return f"{self._prefix}:{number}"
        # Of two files that begin after the same number of texts, the first is empty.
        before, file = next(each for each in reversed(self._begun) if each[0] < number)
        return file.place(number - before)

    def last_notes(self) -> Iterator[str]:
        """Yield notes on texts that may have errors."""
        for flaw, count in self._flaws.items():
            if count:
                has = "has" if count == 1 else "have"
                yield f"{count_text(count, 'row')} {has} {flaw}; each was translated as one line"

    def _unequal(self, words: str) -> DataError:
        return DataError(f"{self._prefix} has {words}: line by line it says how each translation begins (input.prefix)")

    def _texts(self, stream: IO[bytes] | None) -> Iterator[Pair]:
        """Yield the texts of all files."""
        count = 0
        for file in self._files:
            file.stream = stream or file.stream
            self._begun.append((count, file))
            for pair in file.texts():
                count += 1
                self._flaws[pair.flaw] += bool(pair.flaw)
                yield pair

    def arriving(self, size: int) -> Iterator[list[Pair]]:
        """Yield the texts that have arrived, up to `size` at once, as soon as there are any."""
        assert self._stdin is not None, "files are not waited for"
        # A reader of its own: Python ends with a fatal error if a thread still waits inside that of sys.stdin.
        stream = open(self._stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (until the command ends)
        return arriving_windows(self.read(stream), size)


def kind_of(path: Path | None, config: InputConfig) -> type[InputFile]:
    """Return the format of a file, or of standard input (None); ConfigError for one that does not fit."""
    if config.format != "auto":
        kind = DOCUMENTS.get(config.format)
    elif found := path and kind_of_ending(path, has_column=bool(config.column)):
        kind = found
    elif config.column:
        raise ConfigError(
            f"input.column={config.column} needs to know what {path or 'standard input'} is: add input.format=tsv, "
            "csv, jsonl, parquet or xlsx"
        )
    elif path and (named := document_kind(without_compression(path))) and named[0] and not named[1]:
        known = sorted(ending for name in DOCUMENTS.names() for ending in DOCUMENTS.get(name).endings)
        raise DataError(
            f"{path}: {named[0]} is no document that is read ({' '.join(known)} are): save it as one of them, or "
            "name its format with input.format"
        )
    else:
        kind = PlainText
    if path is None and not kind.is_streamable:
        raise ConfigError(f"input.format={config.format} cannot be read from standard input: name the file")
    return kind


def kind_of_ending(path: Path, has_column: bool) -> type[InputFile] | None:
    """Return the format that a file's ending names. has_column: whether input.column names what is translated."""
    ending = without_compression(path).suffix.lower()
    kinds = map(DOCUMENTS.get, DOCUMENTS.names())
    return next((kind for kind in kinds if ending in kind.endings and has_column in kind.with_column), None)
