"""Lists of lines with what a person should check in each: a table for spreadsheets, and a page."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tolka.jobs.formats import Format, Result
from tolka.report.render import render
from tolka.translation.translator import Translator

_ROWS = "<!-- rows -->"  # where the template has its rows


class CheckList(Format):
    """A row for each line: its number, from 1, the flags of its translation, source and translation."""

    scored = False

    def __init__(self, translator: Translator[Any], done: int) -> None:
        """done: lines that an interrupted job has written."""
        super().__init__()
        self._translator, self._number = translator, done
        self.head, self.tail = self._frame()

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        translations, sources = [each.translation for each in results], [each.source for each in results]
        self.flagged = self._translator.flags(sources, translations, self._translator.quality(translations))
        for source, translation, flags in zip(sources, translations, self.flagged, strict=True):
            self._number += 1
            yield self._row(str(self._number), ", ".join(flags), source, translation.text)

    @abstractmethod
    def _frame(self) -> tuple[str, str]:
        """Return what stands before the first row, and after the last one."""

    @abstractmethod
    def _row(self, *cells: str) -> str:
        """Return a row of number, flags, source and translation."""


class TableLines(CheckList):
    """Values with tabs between them, and their names in the first line."""

    def _frame(self) -> tuple[str, str]:
        return "line\tcheck\tsource\ttranslation\n", ""

    def _row(self, *cells: str) -> str:
        return "\t".join(cell.replace("\t", " ") for cell in cells)


class HtmlLines(CheckList):
    """A page, which can hide the lines without flags."""

    def _frame(self) -> tuple[str, str]:
        head, tail = render("lines.html", title="lines to check", rows=_ROWS).split(_ROWS)
        return head, tail

    def _row(self, *cells: str) -> str:
        number, flags, source, translation = map(escape, cells)
        texts = f'<td dir="auto">{source}</td><td dir="auto">{translation}</td>'
        return f'<tr class="{"check" if flags else "fine"}"><td>{number}</td>{texts}<td>{flags}</td></tr>'
