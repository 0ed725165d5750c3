"""The texts of one column of a table, in TSV, CSV, JSON lines or Parquet: as lines, or in the table as a document."""

import io
import re
from collections.abc import Iterator
from typing import IO

from tolka.documents.base import DOCUMENTS, InputFile, LineFile
from tolka.documents.spliced import SplicedDocument
from tolka.documents.string_tables import json_strings
from tolka.documents.strings import string_texts
from tolka.documents.text import Text
from tolka.text.direction import UNKNOWN
from tolka.text.pairs import Pair
from tolka.text.readers import FORMATS
from tolka.text.readers.base import BothSides, ColumnSetting
from tolka.text.readers.columns import TsvFile

_SETTING = ColumnSetting(
    "input.column", "Name one of them with input.column", "or, where the first line is a text already, its number"
)


def _reader(file: InputFile, stream: IO[bytes] | None) -> BothSides:
    """Return the reader of corpora that reads the column of a table. stream: see `InputFile`."""
    # A reader of pairs has two columns; here they are the same.
    columns = [file.layout.column, file.layout.column]
    reader = FORMATS[file.endings[0]](file.path, str(file.path), UNKNOWN, columns, file.limit)
    # Blank lines stay, as the output has a line for each of the input.
    reader.stream, reader.keeps_blank_lines, reader.setting = stream, True, _SETTING
    return reader


class CsvDocument(SplicedDocument):
    """Comma-separated values, of which those in one column are texts."""

    endings = (".csv",)
    quoted = r'"(?:[^"]|"")*+"'  # a cell in quotation marks

    def find(self, content: str) -> Iterator[Text]:
        reader = _reader(self, io.BytesIO(content.encode()))
        assert isinstance(reader, TsvFile)
        for _ in reader.read():  # which checks all of it: only places are to be found
            pass
        delimiter = re.escape(reader.delimiter)
        cell = re.compile(rf"({self.quoted}|[^{delimiter}\n]*?)({delimiter}|\r?\n|\Z)")
        column, rows_before = 1, reader.lines_before + (not reader.is_by_number)
        for match in cell.finditer(content, content.startswith("\ufeff")):
            if column == reader.numbers[0] and rows_before <= 0:
                yield from self.texts_of(match[1], match.start())
            column += 1
            if match[2] != reader.delimiter:
                column, rows_before = 1, rows_before - 1

    def texts_of(self, cell: str, start: int) -> Iterator[Text]:
        """Yield the texts of a cell."""
        value = cell[1:-1].replace('""', '"') if cell.startswith('"') else cell
        return string_texts(value, start, cell, lambda value: '"' + value.replace('"', '""') + '"')


class TsvDocument(CsvDocument):
    """Tab-separated values, in which a quotation mark is a character like any other."""

    endings = (".tsv",)
    quoted = "(?!)"

    def texts_of(self, cell: str, start: int) -> Iterator[Text]:
        return string_texts(cell, start, cell)


class JsonLinesDocument(SplicedDocument):
    """JSON lines, in which the values of one key are texts."""

    endings = (".jsonl",)

    def find(self, content: str) -> Iterator[Text]:
        for _ in _reader(self, io.BytesIO(content.encode())).read():  # which checks it
            pass
        paths = (self.layout.column,), ("translation", self.layout.column)
        for value, start, end, path, is_key, quote in json_strings(content):
            if path in paths and not is_key:
                yield from string_texts(value, start, content[start:end], quote)


class TableColumn(LineFile):
    """A column of a table, which a reader of corpora reads; a blank line is a row with a blank text."""

    with_column = (True,)

    def texts(self) -> Iterator[Pair]:
        for pair in _reader(self, self.stream).read():
            yield Pair(pair.source, "", pair.flaw)

    def count(self) -> int:
        return _reader(self, self.stream).count()


@DOCUMENTS.register("tsv")
class TsvColumn(TableColumn):
    """A column of tab-separated values: its name, or its number, from 1."""

    endings, document = (".tsv",), TsvDocument


@DOCUMENTS.register("csv")
class CsvColumn(TableColumn):
    """A column of comma-separated values: its name, or its number, from 1."""

    endings, document = (".csv",), CsvDocument


@DOCUMENTS.register("jsonl")
class JsonLinesKey(TableColumn):
    """A key of the objects in JSON lines."""

    endings, document = (".jsonl",), JsonLinesDocument


@DOCUMENTS.register("parquet")
class ParquetColumn(TableColumn):
    """A column of a Parquet file."""

    # Parquet has its index at its end, and is read from there.
    endings, is_streamable = (".parquet",), False
