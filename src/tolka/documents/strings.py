"""Strings of programs and cells of tables: what is in one line or column is a text, and the whole is written again."""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tolka.documents.text import EDIT, Code, Text

CODE = "code"
"""Why a string is left alone that programs read."""

_RUN = re.compile(r"\s{2,}|[\n\t]|^\s|\s$")
_OPTION = re.compile(r"-{1,2}\w\S*(?:[ |](?:-{1,2}\w|[A-Z<\[{%])\S*)*")
_SENTENCE_ENDS = tuple(".!?:;>…。！？：")
_WRAPPED = 50  # characters of a line whose sentence may go on in the next one, whatever that begins with
_NOTHING = re.compile("((?!))")


@dataclass
class StringValue(Text):
    """A string, whose texts are inside of it. quote: how the format writes it."""

    quote: Callable[[str], str] = str

    def __str__(self) -> str:
        return self.quote("".join(map(str, self.inside))) if self.is_changed else self.written


def string_texts(
    pieces: Iterable[str | Text], start: int, end: int, content: str, quote: Callable[[str], str] = str
) -> Iterator[Text]:
    """Yield the texts of a string, and the string. pieces: see `pieces_of`. quote: how the format writes it."""
    string = StringValue([], start, end, content[start:end], reason=EDIT, inside=[*pieces], quote=quote)
    yield from (piece for piece in string.inside if isinstance(piece, Text))
    yield string


def pieces_of(
    value: str,
    place: int,
    kept: re.Pattern[str] = _NOTHING,
    read: Callable[[str], str] = str,
    escape: Callable[[str], str] = str,
) -> Iterator[str | Text]:
    """Yield the texts of a string, and the blanks between and around them, which stay: of line breaks and columns.

    A line that ends inside of a sentence goes on in the next one. place: of the string in the document. kept: one group
    around what stays as it is; read: what the model reads of that. escape: of characters, beside the string's quoting.
    """
    start = 0
    for run in [*_RUN.finditer(value), None]:
        if run and not _is_between(value, start, run):
            continue
        if block := value[start : run.start() if run else len(value)]:
            split = enumerate(kept.split(block))
            parts = [Code([part], "kept", text=read(part)) if odd % 2 else part for odd, part in split]
            reason = CODE if _OPTION.fullmatch(block) else ""
            yield Text(parts, place, place, block, escape=escape, reason=reason, nested=True, finish=_wrapping(block))
        if run:
            yield run[0]
            start = run.end()


def _is_between(value: str, start: int, run: re.Match[str]) -> bool:
    """Return whether blanks are between two texts, of which the first begins at `start`."""
    blanks, before, after = run[0], value[max(run.start() - 1, 0) : run.start()], value[run.end() : run.end() + 1]
    if not before or not after or "\t" in blanks or blanks.count("\n") > 1:
        return True
    if "\n" not in blanks:
        return len(blanks) > 2 or _OPTION.fullmatch(value, start, run.start()) is not None
    if before in _SENTENCE_ENDS:
        return True
    length = run.start() - max(start, value.rfind("\n", 0, run.start()))
    return not (after.islower() or (length >= _WRAPPED and blanks == "\n" and after.isalpha()))


def _wrapping(block: str) -> Callable[[str], str]:
    """Return what gives a translation lines as long as the longest of a text, with the blanks before the second one."""
    first, *others = block.split("\n")
    if not others:
        return str
    indent = "\n" + others[0][: len(others[0]) - len(others[0].lstrip())]
    width = max(map(len, [first, *map(str.strip, others)]))
    return lambda written: indent.join(textwrap.wrap(written, width, break_long_words=False, break_on_hyphens=False))
