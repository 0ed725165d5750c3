"""What HTML and XML have in common: events with their places, and texts of elements with elements inside of them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import unescape
from html.parser import HTMLParser
from typing import Any, NamedTuple
from xml.parsers import expat

from tolka.documents.text import Code, Text, pairs
from tolka.errors import DataError

_BLOCK = 2**16  # characters that are parsed at once
_BLANKS = " \t\r\n\f"
_LAST_ITEMS = 8
_ATTRIBUTE = re.compile(r"""\s+([\w:.-]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
_MAX_DEPTH = 100  # elements that are open at once
_STEPS = {"start": 1, "end": -1}
_NO_XML = {*range(32), 0xFFFE, 0xFFFF} - {9, 10, 13}
_ESCAPES = dict.fromkeys(_NO_XML, "") | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}


class Event(NamedTuple):
    """A tag, characters, or anything else between two places of a content. kind: start, end, text or other.

    name: of the element. text: of characters, with references resolved.
    """

    kind: str
    name: str
    attributes: Mapping[str, str]
    start: int
    end: int
    text: str = ""


class Element(NamedTuple):
    """An element: its tags, and the events between them; or any other event, which is its own end."""

    start: Event
    inside: Sequence[Event]
    end: Event

    @property
    def name(self) -> str:
        """The name without a prefix."""
        return self.start.name.rpartition(":")[2]

    @property
    def text(self) -> str:
        """All characters in it."""
        return "".join(event.text for event in self.inside)


def elements(events: Iterable[Event], is_whole: Callable[[Event], bool] = lambda start: True) -> Iterator[Element]:
    """Yield the outermost elements, and the events between them. is_whole: of start tags; others are such events."""
    of_element, depth = list[Event](), 0
    for event in events:
        of_element.append(event)
        if depth or (event.kind == "start" and is_whole(event)):
            depth += _STEPS.get(event.kind, 0)
        if not depth:
            yield Element(of_element[0], of_element[1:-1], event)
            of_element = []


def escaped(text: str) -> str:
    """Return a text as XML and HTML write it between tags, without characters that XML does not have."""
    return text.translate(_ESCAPES)


def attribute(text: str) -> str:
    """Return a text as XML and HTML write it in an attribute."""
    return escaped(text).replace('"', "&quot;").replace("'", "&#39;")


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Return a start tag with other values of attributes, "" for none."""
    others = [match[0] for match in _ATTRIBUTE.finditer(tag) if match[1] not in values]
    new = [f' {key}="{attribute(value)}"' for key, value in values.items() if value]
    return "".join([*re.findall(r"^\W*<[^\s/>]+", tag), *others, *new, "/>" if tag.endswith("/>") else ">"])


def xml_events(content: str, name: str) -> Iterator[Event]:
    """Yield the events of XML, without a gap. name: of the file, for messages.

    DataError for what is no XML, for entities that it declares, which no document needs, and which may be huge, and for
    more elements in each other than any document has.
    """
    raw = content.encode("utf-8", "surrogatepass")
    parser, begun = expat.ParserCreate("utf-8"), list[tuple[int, str, str, Any, str]]()
    depth = 0

    def handler(kind: str) -> Callable[..., None]:
        def add(first: str = "", second: Any = None, *_: object) -> None:
            nonlocal depth
            depth += _STEPS.get(kind, 0)
            if depth > _MAX_DEPTH:
                raise DataError(f"{name}:{parser.CurrentLineNumber}: more than {_MAX_DEPTH} elements in each other")
            is_tag = kind in ("start", "end")
            begun.append((parser.CurrentByteIndex, kind, first if is_tag else "", second or {}, first))

        return add

    def refuse(entity: str, *_: object) -> None:
        raise DataError(
            f"{name}:{parser.CurrentLineNumber}: it declares an entity ({entity}), which is not read; remove it"
        )

    parser.StartElementHandler, parser.EndElementHandler = handler("start"), handler("end")
    parser.CharacterDataHandler, parser.DefaultHandler = handler("text"), handler("other")
    # Their marks are empty characters, as the text between them is written without them.
    parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = handler("text")
    parser.CommentHandler = parser.ProcessingInstructionHandler = handler("other")
    parser.EntityDeclHandler = refuse
    place = offset = 0  # in the content, and of the same in the bytes

    def events(ready: list[tuple[int, str, str, Any, str]], end: int) -> Iterator[Event]:
        nonlocal place, offset
        for (_, kind, element, attributes, text), (after, *_) in zip(
            ready, [*ready[1:], (end, "", "", {}, "")], strict=True
        ):
            length = len(raw[offset:after].decode("utf-8", "surrogatepass"))
            yield Event(kind, element, attributes, place, place + length, text if kind == "text" else "")
            place, offset = place + length, after

    try:
        for start in range(0, len(raw), _BLOCK):
            parser.Parse(raw[start : start + _BLOCK], False)
            # The last event ends where the next one begins.
            ready, begun[:] = begun[:-1], begun[-1:]
            if ready:
                yield from events(ready, begun[0][0])
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(f"{name}:{error.lineno}: this is not XML ({reason})") from None
    yield from events(begun, len(raw))


class _Html(HTMLParser):
    """Collects the events of HTML, each with the line and column in which it begins."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.begun: list[tuple[tuple[int, int], str, str, Mapping[str, str], str | None]] = []

    def add(self, kind: str, name: str = "", attributes: Any = (), text: str | None = "") -> None:
        """Add an event. text: of characters; None for a reference, whose characters its place has."""
        # Of an attribute that is there twice the first one counts.
        values = {key: value or "" for key, value in reversed(attributes)}
        self.begun.append((self.getpos(), kind, name, values, text))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.add("start", tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.add("end", tag)

    def handle_data(self, data: str) -> None:
        self.add("text", text=data)

    def handle_entityref(self, name: str) -> None:
        self.add("text", text=None)

    def handle_comment(self, data: str) -> None:
        self.add("other")

    handle_startendtag = handle_starttag  # as in browsers, where only void elements end with their tag
    handle_charref = handle_entityref
    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def html_events(content: str) -> Iterator[Event]:
    """Yield the events of HTML, without a gap, as browsers would read it."""
    parser, line, line_start = _Html(), 1, 0
    waiting: tuple[int, str, str, Mapping[str, str], str | None] | None = None

    def events() -> Iterator[Event]:
        nonlocal line, line_start, waiting
        for (of_line, column), kind, name, attributes, text in parser.begun:
            while line < of_line:
                line, line_start = line + 1, content.index("\n", line_start) + 1
            if waiting:
                yield finished(line_start + column)
            waiting = line_start + column, kind, name, attributes, text
        parser.begun.clear()

    def finished(end: int) -> Event:
        assert waiting
        start, kind, name, attributes, text = waiting
        return Event(kind, name, attributes, start, end, unescape(content[start:end]) if text is None else text)

    for start in range(0, len(content), _BLOCK):
        parser.feed(content[start : start + _BLOCK])
        yield from events()
    parser.close()
    yield from events()
    if waiting:
        yield finished(len(content))


def with_texts(content: str, texts: Iterable[Text], start: int, end: int) -> list[str | Text]:
    """Return the content from one place to another, with the texts in it that are in no other one."""
    raw: list[str | Text] = []
    for text in texts:
        if not text.nested:
            raw += [content[start : text.start], text]
            start = text.end
    return [*raw, content[start:end]]


class TextBuilder:
    """Makes a text of the characters and tags inside of a block.

    escape: how its format writes characters. finish: makes of a text and its translation what is written.
    """

    def __init__(
        self,
        content: str,
        escape: Callable[[str], str] = escaped,
        finish: Callable[[Text, str], str] = lambda text, written: written,
    ) -> None:
        self._content, self._escape, self._finish = content, escape, finish
        self._items: list[tuple[str | Code, int, int]] = []
        self._inside: list[Text] = []  # texts of attributes, and of elements inside of markup

    @property
    def last_characters(self) -> str:
        """The last characters so far."""
        return "".join(part for part, _, _ in self._items[-_LAST_ITEMS:] if isinstance(part, str))

    def add(self, part: str | Code, start: int, end: int, inside: Sequence[Text] = ()) -> None:
        """Add characters, or markup with the texts inside of it, whose raw is what the content has unless it is set."""
        self._items.append((part, start, end))
        if isinstance(part, Code):
            part.raw = part.raw or with_texts(self._content, inside, start, end)
            self._inside += inside

    def finish(self, reason: str = "") -> Iterator[Text]:
        """Yield the text, after those inside of it. What is at its edges, and of no part of it, is none of it.

        reason: why it is left alone.
        """
        items, inside = self._trimmed(), self._inside
        self._items, self._inside = [], []
        if not items:
            yield from inside
            return
        (_, start, first_end), (last, last_start, end) = items[0], items[-1]
        if isinstance(items[0][0], str):
            start += len(self._content[start:first_end]) - len(self._content[start:first_end].lstrip(_BLANKS))
        if isinstance(last, str):
            end = last_start + len(self._content[last_start:end].rstrip(_BLANKS))
        escape, table = self._escape, dict[int, str]()
        for part, a, b in items:
            # A character that the document writes as a reference is written so again.
            if isinstance(part, str) and len(part) == 1 and self._content[a] == "&" and escape(part) == part:
                table[ord(part)] = self._content[a:b]

        def escape_text(text: str) -> str:
            return escape(text).translate(table)

        yield from (text for text in inside if text.start < start)
        within = [text for text in inside if start <= text.start < end]
        raw = with_texts(self._content, within, start, end) if within else ()
        for text in within:
            text.nested = True
            yield text
        written, parts = self._content[start:end], [part for part, _, _ in items]
        text = Text(parts, start, end, written, escape=escape_text, reason=reason, inside=raw)
        text.finish = partial(self._finish, text)
        yield text
        yield from (text for text in inside if text.start >= end)

    def _trimmed(self) -> list[tuple[str | Code, int, int]]:
        """Return the items without markup at their edges, and without that around all of them."""
        items, codes = list(self._items), [part for part, _, _ in self._items if isinstance(part, Code)]
        closes = {id(codes[first]): codes[last] for first, last in pairs(codes).items()}
        paired = {*closes, *map(id, closes.values())}

        def is_around(part: str | Code, start: int, end: int) -> bool:
            if isinstance(part, Code):
                return not part.text and id(part) not in paired
            return not (part or self._content[start:end]).strip(_BLANKS)  # the marks of CDATA have no characters

        while items:
            if is_around(*items[0]):
                items.pop(0)
            elif is_around(*items[-1]):
                items.pop()
            elif isinstance(items[0][0], Code) and closes.get(id(items[0][0])) is items[-1][0]:
                items = items[1:-1]
            else:
                break
        return items
