"""Spreadsheets of Microsoft Excel: all texts in their cells, or those of one column (ECMA-376, part 1, section 18)."""

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Element, Event, elements, with_attributes, with_texts
from tolka.documents.office_xml import OfficeXml, prefix_of
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError


@DOCUMENTS.register("xlsx")
class Spreadsheet(OfficeXml):
    """A spreadsheet. Formulas, names of sheets, and names of the columns of tables, which formulas use, stay.

    layout.column: what the first row has in the column that is translated, which is then no text; or the letters or
    the number of that column, all of which is translated. "" for all texts.
    """

    endings, main, with_column = (".xlsx", ".xlsm", ".xltx"), "sheet", (False, True)
    kinds = r"\.sharedStrings|\.worksheet|\.drawing"

    def texts(self) -> Iterator[Text]:
        self._headers, self._has_column = list[str](), not self.layout.column
        for text in super().texts():
            if text.source in self._table_columns:
                text.reason = "name of a table's column"
            yield text
        if not self._has_column:
            some = ", ".join(map(repr, self._headers[:10]))
            raise DataError(f"{self.path}: no sheet has a column {self.layout.column!r}; use {some}, or a letter")

    @cached_property
    def _table_columns(self) -> set[str]:
        """The names of the columns of tables, which their cells must have as well."""
        events = (event for name in self.parts_of(r"\.table") for event in self.events(name, self.content(name)))
        return {event.attributes["name"] for event in events if event.name.endswith("tableColumn") and event.attributes}

    @cached_property
    def _shared(self) -> tuple[str, dict[str, Element]]:
        """The content of the part of texts that cells refer to by their numbers, and these texts."""
        content, strings = "", list[Element]()
        for name in self.parts_of(r"\.sharedStrings"):
            content = self.content(name)
            strings += elements(self.events(name, content), lambda start: start.name == "s:si")
        texts = (each for each in strings if each.start.name == "s:si")
        return content, {str(number): each for number, each in enumerate(texts)}

    def find(self, content: str, events: Iterable[Event]) -> Iterator[Text]:
        if not self.layout.column:
            yield from super().find(content, events)
            return
        first_row, column = "", self.layout.column
        for cell in elements(events, lambda start: start.name == "s:c"):
            place, string = cell.start.attributes.get("r", ""), self._string_in(cell)
            letters = place.rstrip("0123456789")
            number = reduce(lambda number, letter: 26 * number + ord(letter) - ord("A") + 1, letters, 0)
            if string is None:
                continue
            first_row = first_row or place.removeprefix(letters)
            is_header = place == f"{letters}{first_row}"
            if is_header:
                self._headers.append(string.text)
            if is_header and string.text == self.layout.column:
                column, self._has_column = letters, True
            elif column in (letters, str(number)):
                self._has_column = True
                for text in self._texts_in(content, cell, string):
                    text.where = place
                    yield text

    def _string_in(self, cell: Element) -> Element | None:
        """Return the text of a cell; None if it has none, or a formula."""
        parts = {each.start.name: each for each in elements(cell.inside)}
        number = parts["s:v"].text if cell.start.attributes.get("t") == "s" and "s:v" in parts else ""
        return None if "s:f" in parts else self._shared[1].get(number, parts.get("s:is"))

    def _texts_in(self, content: str, cell: Element, string: Element) -> Iterator[Text]:
        """Yield the texts of a cell, and let one that several cells share move into this one if it is translated."""
        if string.start.name == "s:is":
            yield from self.texts_of(content, string)
            return
        shared, (start, end) = self._shared[0], (cell.start.start, cell.end.end)
        texts = list(self.texts_of(shared, string))
        tag = with_attributes(content[start : cell.start.end], {"t": "inlineStr"})
        name, inside = f"{prefix_of(tag)}is", with_texts(shared, texts, string.start.end, string.end.start)
        for text in texts:
            text.nested = True
            yield text
        inside = [f"{tag}<{name}>", *inside, f"</{name}>{content[cell.end.start : end]}"]
        yield Text([], start, end, content[start:end], reason=EDIT, inside=inside)
