"""Columns separated by tabs (TSV), or by commas and quoted (CSV, RFC 4180)."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from tolka.errors import ConfigError, DataError
from tolka.system.number_format import count_text
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, check_columns, one_line, register_reader

# A first line of Excel's, which hides it from its users.
_SEPARATOR = re.compile(r'"?sep=([^"\w\s]|\t)"?', re.IGNORECASE)


@register_reader(".tsv")
class TsvFile(BothSides):
    """TSV without quoting: a quotation mark is a character like any other.

    Columns are numbered from 1 or named in the first line, by corpus.columns or after the languages.
    """

    separators = "tabs"
    has_lines = True
    max_cell_lines = 0  # of which a cell has fewer; 0 = any number
    # How the file is written, once it is read.
    delimiter, lines_before = "\t", 0
    numbers: Sequence[int] = ()
    """of the columns, from 1"""

    def read(self) -> Iterator[Pair]:
        rows = self.rows()
        if self.is_by_number:
            numbers = [int(column) for column in self.columns]
            if 0 in numbers:
                raise ConfigError(f"{self.setting.key} ({', '.join(self.columns)}): columns are counted from 1")
        else:
            line, header = next(rows, (1, []))  # may be the second line of the file
            names, columns = [" ".join(name.split()) for name in header], self.columns or self.direction
            check_columns(columns, names, f"{self.path}:{line}", f"{self.setting.names}; {self.setting.numbers}")
            numbers = [names.index(name) + 1 for name in columns]
        self.numbers = numbers
        for line, cells in rows:
            if cells == [""]:  # a blank line: cleaning drops and counts it
                yield Pair("", "")
                continue
            if max(numbers) > len(cells):
                if self.repair is not None:
                    yield Pair(one_line(" ".join(cells)), "", "too few columns")
                    continue
                raise DataError(
                    f"{self.path}:{line}: {count_text(len(cells), 'column')}, and column {max(numbers)} is wanted; are "
                    f"they separated by {self.separators}?"
                )
            source, target = (one_line(cells[number - 1]) for number in numbers)
            is_unclosed = self.max_cell_lines and any(cell.count("\n") >= self.max_cell_lines for cell in cells)
            yield Pair(source, target, f"a cell of {self.max_cell_lines} lines or more" if is_unclosed else "")

    @property
    def is_by_number(self) -> bool:
        """Whether the columns have numbers, and the first line is a row like any other."""
        return bool(self.columns) and all(column.isdecimal() for column in self.columns)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of each row, and the number of the line that it ends in."""
        for number, line in enumerate(self._text_lines(), 1):
            yield number, line.split("\t")

    def count(self) -> int:
        return super().count() - (not self.is_by_number)


@register_reader(".csv")
class CsvFile(TsvFile):
    """CSV: a quoted cell may contain commas, line feeds and doubled quotation marks.

    The separator is the one of comma, semicolon and tab that the first line has most of, or what `sep=;` there names.
    """

    separators = "commas, semicolons or tabs"
    has_lines = False  # a quoted cell may have several
    max_cell_lines = 20  # with as many it is not a sentence: a quotation mark was not closed

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        lines = self._text_lines()
        first = next(lines, None)
        if first is None:
            return
        self.delimiter = max(",;\t", key=first.count)
        if named := _SEPARATOR.fullmatch(first):
            self.delimiter, self.lines_before, first = named[1], 1, next(lines, "")
        # Of a cell: else one open quotation mark takes in the rest of the file. The limit is one for the whole process.
        csv.field_size_limit(self.limit.max_bytes)
        reader = csv.reader((f"{line}\n" for line in chain([first], lines)), delimiter=self.delimiter, strict=True)
        row_end = 0  # line in which the last good row ends: the next begins with the open quotation mark
        try:
            for cells in reader:
                if not cells and self.keeps_blank_lines:
                    yield self.lines_before + reader.line_num, [""]
                if cells:  # a blank line is not a row
                    yield self.lines_before + reader.line_num, cells
                row_end = reader.line_num
        except csv.Error as error:
            raise DataError(
                f"{self.path}:{self.lines_before + row_end + 1}: not CSV ({error}); is a quotation mark opened here, "
                "or doubled, that should not be?"
            ) from None
