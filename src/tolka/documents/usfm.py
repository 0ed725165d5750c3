"""Scripture as Bible translators write it: verses, headings, and notes inside of them (USFM 3)."""

import re
from collections.abc import Iterator
from functools import partial

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import TextBuilder
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import Code, Text
from tolka.errors import DataError

_TOKEN = re.compile(
    r"""
    (?P<unread> \\(?:id|usfm|ide|sts|rem|cp)\b[^\r\n]* | \\[cv]\s+[^\s\\]+ )  # about the file; numbers
    | (?P<lone> \\(?P<number>va|vp|ca|cat|fv)\s[^\\]*\\(?P=number)\* | \\(?:fr|xo|fm)\s[^\\]* | //
        | \\[\w-]+\s*(?:\|[^\\]*)?\\\* )                   # other numbers, milestones
    | \\(?P<note> f|fe|ef|x|ex)\s+\S+ (?P<inside> (?:[^\\]++|\\(?!(?:(?P=note)\*|(?P=note)\s|[cv]\s)))*+ ) \\(?P=note)\*
    | (?P<close> (?:\|[^\\]*)? \\(?P<closed>\+?\w+)\* )    # with the attributes of a word
    | (?P<poetry> \s*\\(?:q[rcm]?\d*|b)\s+ )
    | \\(?P<marker>\+?\w+)[ \t]?
    | (?:[^\\|/\s]|\s++(?!\\))++ | \s+ | \|[^\\]* | .
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANKS_AT_LINE_END = re.compile(r"(?<! ) +(?=\r?\n)")
_CLOSED = re.compile(r"\\\+?(\w+)\*")


@DOCUMENTS.register("usfm")
class Usfm(SplicedDocument):
    """Unified Standard Format Markers (USFM 3.0); one text from a verse or paragraph to the next."""

    endings = (".usfm", ".sfm")

    def find(self, content: str) -> Iterator[Text]:
        first = re.search(r"\\\w", content)
        if not first:
            raise DataError(f"{self.path}: no markers, such as \\id and \\v; if it has another form, set input.format")
        # Markers of characters are closed; those of paragraphs are not.
        for text in _texts(content, first.start(), len(content), frozenset(_CLOSED.findall(content))):
            text.finish = partial(_BLANKS_AT_LINE_END.sub, "")
            yield text


def _texts(content: str, start: int, end: int, closed: frozenset[str], note: str = "") -> Iterator[Text]:
    """Yield the texts of a part of the content. closed: markers inside of paragraphs. note: the marker of one."""
    builder, is_verse = TextBuilder(content, str), False
    for token in _TOKEN.finditer(content, start, end):
        span, marker = token.span(), token["marker"] or ""
        if token["lone"]:
            builder.add(Code([]), *span)
        elif token["note"]:
            builder.add(Code([]), *span, [*_texts(content, *token.span("inside"), closed, token["note"])])
        elif token["close"]:
            builder.add(Code([], "close", token["closed"]), *span)
        elif marker and (note or marker.lstrip("+") in closed):
            builder.add(Code([], "open", marker), *span)
        elif token["poetry"] and is_verse:
            builder.add(" ", span[0], span[0])  # what the model reads in its place
            builder.add(Code([]), *span)
        elif token["unread"] or token["poetry"] or marker:
            yield from builder.finish()
            is_verse = not marker
        else:
            builder.add(token[0], *span)
    yield from builder.finish("cross reference" if note in ("x", "ex") else "")
