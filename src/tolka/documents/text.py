"""A text of a document: what the model reads of it, the markup inside of it, and what is written in its place."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tolka.text.placeholders import placeholders

_BLANKS = re.compile(r"[ \t\r\n\f]+")
_LETTER = re.compile(r"[^\W\d_]")
_TAG = re.compile(r"<(/?)([\w:-]+)(?:\s[^<>]*)?(?<!/)>")
_LONGEST = 10_000  # characters of a text with markup: an alignment takes the square of its length
_DEEPEST = 50  # spans in each other; those inside are points
_NUMBERS = range(42, 98, 11)  # for the model to read in place of kept text

NO_WORDS = "without words"
"""Why a text is left alone that has no letter, except in what stays as it is."""
TOO_LONG = "too long for its markup to be placed"
EDIT = "edit"
"""The reason of what is no text of the document: a change that its new language calls for."""

DOUBTS = ("untranslated", "markup", "kept_text", "line_length", "reading_speed", "repeated")
"""What a person should look at in a translation, beside the flags: that it is blank, whether markup and kept text are
at the right place, and subtitles that are too long to be read, or too short for their cues and repeated in them."""


@dataclass
class Code:
    """Markup inside a text, which stays as it is.

    raw: as the document has it; the texts inside of it (a footnote, the description of a picture) are translated by
    themselves. kind: open, close, lone, or kept: a part of the text, `text`, which the model reads and its translation
    has as it is. name: what open and close have in common. spaced: whether it has a blank on both sides, of which the
    source has one.
    """

    raw: "Sequence[str | Text]"
    kind: str = "lone"
    name: str = ""
    text: str = ""
    spaced: bool = False

    def __str__(self) -> str:
        return "".join(map(str, self.raw))


@dataclass
class Node:
    """Markup and its place in the source of a text: characters from `start` to `end`, and what is inside of it.

    kind: span, point (between two characters) or kept. close: what ends a span.
    """

    kind: str
    start: int
    end: int
    code: Code
    close: Code | None = None
    children: "list[Node]" = field(default_factory=list)

    def raw(self) -> "list[str | Text]":
        """Return all the markup, without the characters inside of it."""
        inside = [part for child in self.children for part in child.raw()]
        return [*self.code.raw, *inside, *(self.close.raw if self.close else ())]

    def __str__(self) -> str:
        return str(Code(self.raw()))


@dataclass
class Text:
    """A text of a document.

    parts: its characters, and the markup between them. start, end: its place in the content of the document, or of the
    file inside of it. written: what stands there; the original until it is translated. where: its place for messages.
    escape: how the format writes characters. reason: why it is left alone; "" if it is to be translated. nested:
    whether it is inside the markup of a text that follows. finish: makes of its characters and markup what is written.
    arrange: returns what stands in a translation at fixed places, whatever its markup (from, to, what is written), and
    what a person should look at. inside: what is written in place of its original as soon as a text in there is
    translated; of an edit, as `finish` returns it.
    """

    parts: Sequence[str | Code]
    start: int = 0
    end: int = 0
    written: str = ""
    where: str = ""
    escape: Callable[[str], str] = str
    reason: str = ""
    nested: bool = False
    finish: Callable[[str], str] = str
    arrange: "Callable[[str], tuple[Sequence[tuple[int, int, str]], list[str]]]" = lambda translation: ((), [])
    inside: "Sequence[str | Text]" = ()

    def __post_init__(self) -> None:
        self._original = self.written
        self._pieces = pieces = [piece for part in self.parts for piece in _pieces(part, self.escape)]
        self.source, places = _source_of(pieces)
        codes = [piece for piece in pieces if isinstance(piece, Code)]
        self.nodes = _tree(codes, places, self.source)
        if not self.reason and self.nodes and len(self.source) > _LONGEST:
            self.reason = TOO_LONG
        if not self.reason and not any(_LETTER.search(piece) for piece in pieces if isinstance(piece, str)):
            self.reason = NO_WORDS

    def numbered(self) -> "Text":
        """Return the text with a number for the model to read in place of each kept part.

        A model copies numbers that it has never seen, which it may not do with %s or a name.
        """
        numbers = (str(number) for number in _NUMBERS if str(number) not in self.source)
        read = [
            replace(piece, text=next(numbers, piece.text))
            if isinstance(piece, Code) and piece.kind == "kept"
            else piece
            for piece in self._pieces
        ]
        return replace(self, parts=read)

    @property
    def is_changed(self) -> bool:
        """Whether it, or a text inside of it, is not written as it was."""
        inside = [each for each in self.inside if isinstance(each, Text)]
        return self.written != self._original or any(each.reason == EDIT or each.is_changed for each in inside)

    def __str__(self) -> str:
        if self.written != self._original or not self.is_changed:
            return self.written
        inside = "".join(map(str, self.inside))
        return self.finish(inside) if self.reason == EDIT else inside


def _pieces(part: str | Code, escape: Callable[[str], str]) -> Iterator[str | Code]:
    """Yield a part; characters with their placeholders as codes, of which tags that belong together are spans."""
    if isinstance(part, Code):
        yield part
        return
    start = 0
    for match in placeholders(part):
        yield part[start : match.start()]
        yield kept_code(match[0], part, escape(match[0]))
        start = match.end()
    yield part[start:]


def kept_code(kept: str, around: str, raw: str) -> Code:
    """Return the code of a part of a string that stays; a tag whose other one is there as well is that of a span.

    around: the string. raw: the part as it is written.
    """
    tag = _TAG.fullmatch(kept)
    if tag and re.search(rf"<{'' if tag[1] else '/'}{re.escape(tag[2])}[\s>]", around):
        return Code([raw], "close" if tag[1] else "open", tag[2])
    return Code([raw], "kept", text=kept)


def _source_of(pieces: Sequence[str | Code]) -> tuple[str, list[tuple[int, int]]]:
    """Return what the model reads, with single blanks, and where each code stands in it: from, to."""
    source, places = "", list[tuple[int, int]]()
    for last, piece in zip([None, *pieces], pieces, strict=False):
        before = len(source)
        text = _BLANKS.sub(" ", piece if isinstance(piece, str) else piece.text)
        source += text.lstrip(" ") if not source or source.endswith(" ") else text
        if isinstance(piece, Code):
            places.append((before, len(source)))
        elif isinstance(last, Code) and last.kind == "lone" and text[:1] == source[before - 1 : before] == " ":
            last.spaced = True
    source = source.rstrip(" ")
    return source, [(min(start, len(source)), min(end, len(source))) for start, end in places]


def _tree(codes: Sequence[Code], places: Sequence[tuple[int, int]], source: str) -> list[Node]:
    """Return the markup of a text, nested as it is there."""
    ends = pairs(codes)
    top: list[Node] = []
    around: list[tuple[int, list[Node]]] = [(-1, top)]  # the number of the code that ends each span, and its children
    for number, (code, (start, end)) in enumerate(zip(codes, places, strict=True)):
        if number == around[-1][0]:
            around.pop()
            _fit(around[-1][1], source)
        elif number in ends and len(around) <= _DEEPEST:
            node = Node("span", start, places[ends[number]][0], code, codes[ends[number]])
            around[-1][1].append(node)
            around.append((ends[number], node.children))
        else:
            around[-1][1].append(Node("kept" if code.text else "point", start, end, code))
    return top


def pairs(codes: Sequence[Code]) -> dict[int, int]:
    """Return the number of the code that closes each one that opens. Of two that overlap the outer one is no span."""
    ends, opened, names = dict[int, int](), list[int](), Counter[str]()
    for number, code in enumerate(codes):
        if code.kind == "open":
            opened.append(number)
            names[code.name] += 1
        elif code.kind == "close" and names[code.name]:
            while codes[opened[-1]].name != code.name:  # never closed, or after this one
                names[codes[opened.pop()].name] -= 1
            names[code.name] -= 1
            ends[opened.pop()] = number
    return ends


def _fit(siblings: list[Node], source: str) -> None:
    """Let the last of the siblings, a span, begin and end at a character; one without any is a point."""
    node = siblings[-1]
    while node.start < node.end and source[node.start] == " ":
        node.start += 1
    while node.start < node.end and source[node.end - 1] == " ":
        node.end -= 1
    if node.start >= node.end:
        siblings[-1] = Node("point", node.start, node.start, Code(node.raw()))
