"""Tables and lines as documents: the texts of one column are replaced, and everything else stays."""

import io
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from tolka.documents.base import InputFile
from tolka.documents.spliced import SplicedDocument
from tolka.documents.string_tables import json_strings
from tolka.documents.strings import pieces_of, string_texts
from tolka.documents.text import Text
from tolka.text.direction import UNKNOWN
from tolka.text.readers import FORMATS
from tolka.text.readers.base import BothSides, ColumnSetting
from tolka.text.readers.columns import TsvFile

_SETTING = ColumnSetting(
    "input.column", "Name one of them with input.column", "or, where the first line is a text already, its number"
)


def column_reader(file: InputFile) -> BothSides:
    """Return the reader of corpora that reads the column of a table."""
    # A reader of pairs has two columns; here they are the same.
    columns = [file.layout.column, file.layout.column]
    reader = FORMATS[file.endings[0]](file.path, str(file.path), UNKNOWN, columns, file.limit)
    assert isinstance(reader, BothSides)
    # Blank lines stay, as the output has a line for each of the input.
    reader.stream, reader.keeps_blank_lines, reader.setting = file.stream, True, _SETTING
    return reader


class LinesDocument(SplicedDocument):
    """Lines that are texts."""

    endings = (".txt",)

    def find(self, content: str) -> Iterator[Text]:
        start = int(content.startswith("\ufeff"))
        for line in content[start:].split("\n"):
            text = line.removesuffix("\r")
            yield from string_texts(pieces_of(text, start), start, start + len(text), content)
            start += len(line) + 1


class TableDocument(SplicedDocument):
    """A table with the texts of layout.column. The reader of corpora checks it; here the places are found."""

    def find(self, content: str) -> Iterator[Text]:
        reader = column_reader(self)
        reader.stream = io.BytesIO(content.encode())
        rows = reader.read()
        # The first one, before which the reader knows nothing of the file.
        for first in rows:
            for _, texts in zip(chain([first], rows), self.rows(content, reader), strict=False):
                yield from texts

    @abstractmethod
    def rows(self, content: str, reader: BothSides) -> Iterator[Iterator[Text]]:
        """Yield the text of each row. reader: has read the first one."""


class TsvDocument(TableDocument):
    """Tab-separated values."""

    endings = (".tsv",)
    cell = r"[^{delimiter}\n]*+"

    def rows(self, content: str, reader: BothSides) -> Iterator[Iterator[Text]]:
        assert isinstance(reader, TsvFile)
        delimiter = re.escape(reader.delimiter)
        pattern = re.compile(rf"({self.cell.format(delimiter=delimiter)})({delimiter}|\n|\Z)")
        place, places = int(content.startswith("\ufeff")), list[tuple[int, int]]()
        rows_before = reader.lines_before + (not reader.is_by_number)
        while match := pattern.match(content, place):
            places.append((match.start(), match.end(1) - match[1].endswith("\r")))
            place = match.end()
            if match[2] == reader.delimiter:
                continue
            if rows_before <= 0:
                yield self._text(content, places, reader)
            rows_before -= 1
            places.clear()

    def _text(self, content: str, places: Sequence[tuple[int, int]], reader: TsvFile) -> Iterator[Text]:
        if len(places) < reader.numbers[0]:  # a blank line
            return
        start, end = places[reader.numbers[0] - 1]
        written = content[start:end]
        quote = partial(self.quoted, reader, written)
        yield from string_texts(pieces_of(self.value(written), start), start, end, content, quote)

    def value(self, written: str) -> str:
        """Return the text of a cell."""
        return written

    def quoted(self, reader: TsvFile, written: str, value: str) -> str:
        """Return a text as a cell. written: what the cell has been."""
        return value


class CsvDocument(TsvDocument):
    """Comma-separated values."""

    endings = (".csv",)
    cell = r'"(?:[^"]|"")*+"\r?|[^{delimiter}\n]*+'

    def value(self, written: str) -> str:
        return written[1:-1].replace('""', '"') if written.startswith('"') else written

    def quoted(self, reader: TsvFile, written: str, value: str) -> str:
        needs_quotes = written.startswith('"') or any(sign in value for sign in (reader.delimiter, '"', "\n", "\r"))
        return '"' + value.replace('"', '""') + '"' if needs_quotes else value


class JsonLinesDocument(TableDocument):
    """JSON lines."""

    endings = (".jsonl",)

    def rows(self, content: str, reader: BothSides) -> Iterator[Iterator[Text]]:
        start, column = int(content.startswith("\ufeff")), self.layout.column
        quote = partial(json.dumps, ensure_ascii=content.isascii() and "\\u" in content)
        for line in content[start:].split("\n"):
            of_path = {string.path: string for string in json_strings(line) if not string.is_key}
            if string := of_path.get((column,)) or of_path.get(("translation", column)):
                place, end = start + string.start, start + string.end
                yield string_texts(pieces_of(string.value, place), place, end, content, quote)
            else:
                yield iter(())
            start += len(line) + 1
