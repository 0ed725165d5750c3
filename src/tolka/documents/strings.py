"""Strings of programs and cells of tables: what is in one line or column is a text, and the whole is written again."""

import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial

import regex

from tolka.documents.text import EDIT, Text, kept_code

CODE = "code"
"""Why a string is left alone that programs read."""

# Blanks between texts and around them: not two inside of one, except behind an option, nor a line break inside of a
# sentence, which goes on with a small letter, or with any where the line is full.
_BETWEEN = regex.compile(
    r"""(?<![\s\0])
    (?!(?<=\S)(?<!^\ {0,8}-\S[^\n]{0,40})\ \ \S)
    (?!(?<![.!?:;>…。！？：])\n(?:\ *\p{Ll}|(?<=[^\n]{50}\n)\p{L}))
    ([\s\0]{2,}+|[\n\t\0]|\A\s|\s\Z)""",
    regex.VERBOSE | regex.MULTILINE,
)
_OPTION = re.compile(r"-{1,2}\w\S*(?:[ |](?:-{1,2}\w|[A-Z<\[{%])\S*)*")


def string_texts(
    value: str,
    start: int,
    written: str,
    quote: Callable[[str], str] = str,
    kept: re.Pattern[str] | None = None,
    escape: Callable[[str], str] = str,
) -> Iterator[Text]:
    """Yield the texts of a string, and the string; what is between them stays, such as line breaks, tabs and NULs.

    start: its place. written: as the document has it. quote: writes a value as the format does. kept: one group around
    what stays as it is. escape: of characters, before they are quoted.
    """
    pieces: list[str | Text] = []
    for number, block in enumerate(_BETWEEN.split(value)):
        if number % 2 or not block:
            pieces.append(block)
            continue
        split = enumerate(kept.split(block) if kept else [block])
        parts = [kept_code(part, block, part) if odd % 2 else part for odd, part in split]
        reason, finish = CODE if _OPTION.fullmatch(block) else "", partial(_wrapped, block)
        text = Text(parts, start, start, block, escape=escape, reason=reason, nested=True, finish=finish)
        pieces.append(text)
        yield text
    yield Text([], start, start + len(written), written, reason=EDIT, inside=pieces, finish=quote)


def _wrapped(text: str, translation: str) -> str:
    """Return a translation in lines as long as the longest of its text, with the blanks before the second of them."""
    if not (indent := re.search(r"\n *", text)):
        return translation
    width = max(len(line.strip()) for line in text.split("\n"))
    return indent[0].join(textwrap.wrap(translation, width, break_long_words=False, break_on_hyphens=False))
