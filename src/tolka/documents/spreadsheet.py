"""Spreadsheets of Microsoft Excel: all texts in their cells, or those of one column (ECMA-376, part 1, section 18)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event, xml_events
from tolka.documents.office_xml import OfficeXml, RunParagraph, named, prefix_of
from tolka.documents.text import Text
from tolka.documents.zipped import Paragraph, paragraphs
from tolka.errors import DataError


@DOCUMENTS.register("xlsx")
class Spreadsheet(OfficeXml):
    """A spreadsheet. Formulas, names of sheets, and names of the columns of tables, which formulas use, stay.

    layout.column: what the first row has in the column that is translated, which is then no text; or the letters or
    the number of that column, all of which is translated. "" for all texts.
    """

    endings, main, with_column = (".xlsx", ".xlsm", ".xltx"), "sheet", (False, True)
    with_texts = r"\.sharedStrings|\.worksheet|\.drawing"

    def parts(self) -> Sequence[str]:
        parts = super().parts()
        return parts if not self.layout.column else self._parts_of("worksheet")

    def _parts_of(self, kind: str) -> list[str]:
        return [name for name in self.names if self.types.get(name, "").endswith(f".{kind}+xml")]

    def texts(self) -> Iterator[Text]:
        self._first_row, self._has_column = list[str](), not self.layout.column
        yield from super().texts()
        if not self._has_column:
            names = ", ".join(map(repr, self._first_row[:10]))
            raise DataError(
                f"{self.path}: no sheet has a column {self.layout.column!r}; it could be {names}, or a letter"
            )

    def find(self, name: str, content: str) -> Iterator[Text]:
        for text in self._column(name, content) if self.layout.column else super().find(name, content):
            if text.source in self._table_columns:
                text.reason = "name of a table's column"
            yield text

    @cached_property
    def _table_columns(self) -> set[str]:
        """The names of the columns of tables, which their cells must have as well."""
        events = (
            event for name in self._parts_of("table") for event in xml_events(self.content(name), self.label(name))
        )
        return {event.attributes.get("name", "") for event in events if event.name.endswith("tableColumn")}

    @cached_property
    def _shared(self) -> list[RunParagraph]:
        """The texts that cells refer to by their numbers."""
        strings = list[RunParagraph]()
        for name in self._parts_of("sharedStrings"):
            content = self.content(name)

            def opened(event: Event, content: str = content) -> Paragraph | None:
                strings.extend([RunParagraph(content, event, self)] if event.name == "s:si" else [])
                return strings[-1] if event.name == "s:si" else None

            list(paragraphs(named(xml_events(content, self.label(name))), opened))
        return strings

    def _column(self, name: str, content: str) -> Iterator[Text]:
        """Yield the texts in the cells of the column."""
        cells = list[_Cell]()

        def opened(event: Event) -> Paragraph | None:
            if event.name != "s:c":
                return RunParagraph(content, event, self) if event.name == "s:is" else None
            cells.append(_Cell(content, event, self._shared))
            return cells[-1]

        list(paragraphs(named(xml_events(content, self.label(name))), opened))
        headers = {cell.written.source: cell.column for cell in cells if cell.written and cell.row == cells[0].row}
        self._first_row += headers
        column, has_header = self.layout.column, self.layout.column in headers
        number = headers.get(column) or (int(column) if column.isdecimal() else _number(column))
        self._has_column |= number > 0
        for cell in cells:
            if cell.written and cell.column == number and not (has_header and cell.row == cells[0].row):
                cell.written.where = f"{self.label(name)}, {cell.place}"
                yield cell.written


class _Cell(Paragraph):
    """A cell of a sheet. written: its text, which moves into the cell when it is translated; None if it has none."""

    def __init__(self, content: str, event: Event, shared: Sequence[RunParagraph]) -> None:
        super().__init__(content)
        self._event, self._shared, self._has_formula, self._string = event, shared, False, -1
        self.place = event.attributes.get("r", "")
        self.column, self.row = (
            _number(self.place.rstrip("0123456789")),
            self.place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        )
        self.written: Text | None = None

    def add_whole(self, event: Event, end: int) -> None:
        self._has_formula |= event.name == "s:f"
        if event.name == "s:v" and self._event.attributes.get("t") == "s" and self.text.isdecimal():
            self._string = int(self.text)
        self._end = end

    def texts(self) -> Iterator[Text]:
        texts = list(self._shared[self._string].texts()) if 0 <= self._string < len(self._shared) else self.inside
        if self._has_formula or not texts:
            return iter(())
        self.written, (text,) = None, texts
        if self._string < 0:
            self.written = text
            return iter(())
        tag = self.content[self._event.start : self._event.end]
        tag = re.sub(r"""\st\s*=\s*(["'])s\1""", ' t="inlineStr"', tag)
        prefix = prefix_of(tag)

        def finish(written: str) -> str:
            return f"{tag}<{prefix}is>{text.finish(written)}</{prefix}is>"

        start = self._event.start
        self.written = replace(text, start=start, end=self._end, written=self.content[start : self._end], finish=finish)
        return iter(())


def _number(letters: str) -> int:
    """Return the number of a column by its letters, from 1; 0 for what is none."""
    number = 0
    for letter in letters if re.fullmatch("[A-Z]{1,3}", letters) else "":
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
