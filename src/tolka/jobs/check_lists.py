"""Lists of lines with what a person should check in each: a table for spreadsheets, and a page."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from tolka.jobs.formats import Format, Result
from tolka.report.render import render

if TYPE_CHECKING:
    from tolka.translation.translator import Translator

_ROWS = "<!-- rows -->"  # where the template has its rows


class CheckList(Format):
    """A row for each line: its number, from 1, the flags of its translation, source and translation.

    As a page, or as values with tabs between them.
    """

    scored = False

    def __init__(self, translator: "Translator[Any]", is_page: bool, done: int) -> None:
        """done: lines that an interrupted job has written."""
        super().__init__()
        self._translator, self._is_page, self._number = translator, is_page, done
        page = render("lines.html", title="lines to check", rows=_ROWS)
        self.head, _, self.tail = page.partition(_ROWS) if is_page else ("line\tcheck\tsource\ttranslation\n", "", "")

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        translations, sources = [each.translation for each in results], [each.source for each in results]
        self.flagged = self._translator.flags(sources, translations, self._translator.quality(translations))
        for source, translation, flags in zip(sources, translations, self.flagged, strict=True):
            self._number += 1
            cells = str(self._number), ", ".join(flags), source, translation.text
            yield (
                _page_row(*map(escape, cells))
                if self._is_page
                else "\t".join(cell.replace("\t", " ") for cell in cells)
            )


def _page_row(number: str, flags: str, source: str, translation: str) -> str:
    texts = f'<td dir="auto">{source}</td><td dir="auto">{translation}</td>'
    return f'<tr class="{"check" if flags else "fine"}"><td>{number}</td>{texts}<td>{flags}</td></tr>'
