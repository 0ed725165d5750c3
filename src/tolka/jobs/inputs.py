"""The input of a job: texts of documents or of a stream, and the beginnings of their translations."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import IO, TextIO

from tolka.documents.base import DOCUMENTS, Document
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


def check_files(files: Sequence[Path], stdin: TextIO | None) -> None:
    """Raise DataError for files that cannot be read, or for none where standard input is closed."""

    def check(path: Path) -> None:
        if path.is_dir():
            raise DataError(
                f"{path} is a folder, not a text{held_files(path)}; models that translate together are joined by commas"
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
    """The texts of files, or of standard input without files, and the layout of the documents around the translations.

    has_layout: whether a document has more than a line for each text. are_still_written: whether somebody may be
    writing the texts, and waiting for an answer.
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
        self._documents: list[Document] = (
            [GivenTranslations(files, config, limit)]
            if are_given
            else [self._kind(path)(path, config.column, limit) for path in files]
            or [self._kind(None)(Path("stdin"), config.column, limit, buffer)]
        )
        self._is_stream = not files
        self.has_layout = any(each.has_layout for each in self._documents)
        self.are_still_written = not files and stdin is not None and is_still_written(stdin)
        self._prefix = user_path(config.prefix) if config.prefix else None
        self._flaws = Counter[str]()
        self._begun = list[tuple[int, Document]]()  # documents read so far, each after the number of texts before it
        self._written, self._open = 0, 0  # number of texts written, and index in _begun of the document of the next one
        if self._prefix is not None and not self._prefix.is_file():
            raise DataError(f"input.prefix: there is no file {self._prefix}")

    def _kind(self, path: Path | None) -> type[Document]:
        """Return the format of a file, or of standard input."""
        name = self._config.format
        if name == "auto":
            name = _format_of_ending(path, has_columns=bool(self._config.column)) if path else ""
            if self._config.column and not name:
                raise ConfigError(
                    f"input.column={self._config.column} needs to know what {path or 'standard input'} is: add "
                    "input.format=tsv, csv, jsonl or parquet"
                )
        kind = DOCUMENTS.get(name or "text")
        if path is None and not kind.is_streamable:
            raise ConfigError(f"input.format={name} cannot be read from standard input: name the file")
        return kind

    def count(self) -> int | None:
        """Return the number of texts, for progress; None if only the end of a stream tells.

        DataError for a file that is not text, and for two parallel files with different numbers of lines.
        """
        if self._is_stream:
            # A file as standard input can be counted ahead; a pipe or terminal cannot.
            if self.are_still_written or self._stdin is None or not self._stdin.buffer.seekable():
                return None
            return count_ahead(self._stdin.buffer)
        count = sum(document.count() for document in self._documents)
        if self._prefix is not None and not any(document.has_columns for document in self._documents):
            beginnings = count_and_digest(self._prefix, self._limit)[0]
            if beginnings != count:
                raise self._unequal(f"{count_text(beginnings, 'line')}, and the texts to translate are {count}")
        return count

    def notes(self) -> Iterator[str]:
        """Yield notes on files that may not be meant to be translated as text."""
        for document in self._documents:
            path = without_compression(document.path)
            name, markup = document_kind(path)
            if markup and type(document) is PlainText:
                is_table = bool(_format_of_ending(path, has_columns=True))
                advice = "; input.column=NAME translates one column alone" if is_table else ""
                yield (
                    f"{document.path} looks like {name}: every line of it is translated as text, {markup} included"
                    f"{advice}"
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

    def write(self, lines: Sequence[str]) -> str:
        """Return the text of the next translations in the layout of their documents."""
        parts, remaining = list[str](), list(lines)
        # One call may have the end of a document and the beginning of the next.
        while remaining:
            document = self._begun[self._open][1]
            end = next((start for start, _ in self._begun[self._open + 1 :]), None)  # None: it is still being read
            count = len(remaining) if end is None else min(len(remaining), end - self._written)
            parts.append(document.write(remaining[:count]))
            self._written, remaining = self._written + count, remaining[count:]
            if self._written == end:
                parts.append(document.end())
                self._open += 1
        return "".join(parts)

    def end(self) -> str:
        """Return the text to write after the last line."""
        return "".join(document.end() for _, document in self._begun[self._open :])

    def place(self, number: int, of_prefix: bool) -> str:
        """Return the file and line of a text, or of the beginning of its translation. number: from 1."""
        if of_prefix and self._prefix is not None:
            return f"{self._prefix}:{number}"
        # Of two documents that begin after the same number of texts, the first is empty.
        before, document = next(each for each in reversed(self._begun) if each[0] < number)
        return document.place(number - before)

    def last_notes(self) -> Iterator[str]:
        """Yield notes on texts that may have errors."""
        for flaw, count in self._flaws.items():
            if count:
                has = "has" if count == 1 else "have"
                yield f"{count_text(count, 'row')} {has} {flaw}; each was translated as one line"

    def _unequal(self, words: str) -> DataError:
        return DataError(f"{self._prefix} has {words}: line by line it says how each translation begins (input.prefix)")

    def _texts(self, stream: IO[bytes] | None) -> Iterator[Pair]:
        """Yield the texts of all documents."""
        count = 0
        for document in self._documents:
            document.stream = stream or document.stream
            self._begun.append((count, document))
            for pair in document.texts():
                count += 1
                self._flaws[pair.flaw] += bool(pair.flaw)
                yield pair

    def arriving(self, size: int) -> Iterator[list[Pair]]:
        """Yield the texts that have arrived, up to `size` at once, as soon as there are any."""
        assert self._stdin is not None, "files are not waited for"
        # A reader of its own: Python ends with a fatal error if a thread still waits inside that of sys.stdin.
        stream = open(self._stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (until the command ends)
        return arriving_windows(self.read(stream), size)


def _format_of_ending(path: Path, has_columns: bool) -> str:
    """Return the format that a file's ending names, among those with columns or those without; "" if none does."""
    ending = without_compression(path).suffix.lower()
    kinds = ((name, DOCUMENTS.get(name)) for name in DOCUMENTS.names())
    return next((name for name, kind in kinds if ending in kind.endings and kind.has_columns == has_columns), "")
