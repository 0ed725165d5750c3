"""What HTML and XML have in common: events with their places, and texts of elements with elements inside of them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import unescape
from typing import NamedTuple
from xml.parsers import expat

from tolka.documents.text import Code, Text, pairs
from tolka.errors import DataError

_BLANKS = " \t\r\n\f"
_MAX_DEPTH = 100  # elements of XML that are open at once
_STEPS = {"start": 1, "end": -1}
_NO_XML = {*range(32), 0xFFFE, 0xFFFF} - {9, 10, 13}
_ESCAPES = dict.fromkeys(_NO_XML, "") | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
# What is not closed goes on until the end: so no place is read twice.
_TOKEN = r"""
    <!-(?=-).*?(?:-->|\Z) | <\?(?:[^<]*?\?>|[^>]*+>?)
    | <(?P<slash>/?)(?P<name>(?:FIRST)[^\s/>]*)(?P<attributes>(?:=\s*+(?:"[^"]*+"?|'[^']*+'?)|=|[^=>]++)*+)>?
    | <[!/][^>]*+>? | (?P<text>[^<&\n]+|&\#?\w+;?|[<&\n])
"""
_HTML_TOKEN = re.compile(_TOKEN.replace("FIRST", "[A-Za-z]"), re.VERBOSE | re.DOTALL)
_XML_TOKEN = re.compile(
    r"<!\[CDATA\[(?P<cdata>.*?)\]\]>|<!DOCTYPE[^>\[]*\[.*?\]\s*>|" + _TOKEN.replace("FIRST", r"[^\W\d]|:"),
    re.VERBOSE | re.DOTALL,
)
_SCRIPT_END = {name: re.compile(rf"</{name}(?=[\s/>])|\Z", re.IGNORECASE) for name in ("script", "style")}
ATTRIBUTE = re.compile(
    r"""\s([^\s=/>"']+)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'>]+)))?"""
)
"""An attribute in a tag: its name is the first group, and its value, if it has one, the last."""


class Event(NamedTuple):
    """A tag, characters, or anything else between two places of a content.

    kind: start, end, text or other. name: of the element.
    text: of characters, with references resolved.
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


def elements(
    events: Iterable[Event],
    is_whole: Callable[[Event], bool] = lambda start: True,
    is_edge: Callable[[Event], bool] = lambda event: False,
) -> Iterator[Element]:
    """Yield the outermost elements, and the events between them. is_whole: of start tags; others are such events.

    is_edge: whether an element that has no end tag, as HTML allows, ends before an event.
    """
    remaining, unclosed = iter(events), set[str]()
    while True:
        of_element, depth = list[Event](), 0
        for event in remaining:
            if depth and of_element[0].name in unclosed and is_edge(event):
                yield Element(of_element[0], of_element[1:], of_element[-1])
                of_element, depth = [], 0
            of_element.append(event)
            if depth or (event.kind == "start" and is_whole(event)):
                depth += _STEPS.get(event.kind, 0) if event.name == of_element[0].name else 0
            if not depth:
                yield Element(of_element[0], of_element[1:-1], event)
                of_element = []
        if not of_element:
            return
        # Its end was looked for until that of the content, which is done once for each name.
        unclosed.add(of_element[0].name)
        number = next((number for number, event in enumerate(of_element) if number and is_edge(event)), len(of_element))
        yield Element(of_element[0], of_element[1:number], of_element[number - 1])
        remaining = iter(of_element[number:])


def escaped(text: str) -> str:
    """Return a text as XML and HTML write it between tags, without characters that XML does not have."""
    return text.translate(_ESCAPES)


def attribute(text: str) -> str:
    """Return a text as XML and HTML write it in an attribute."""
    return escaped(text).replace('"', "&quot;").replace("'", "&#39;")


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Return a start tag with other values of attributes, "" for none."""
    others = [match[0] for match in ATTRIBUTE.finditer(tag) if match[1] not in values]
    new = [f' {key}="{attribute(value)}"' for key, value in values.items() if value]
    return "".join([*re.findall(r"^\W*<[^\s/>]+", tag), *others, *new, "/>" if tag.endswith("/>") else ">"])


def xml_events(content: str, name: str) -> Iterator[Event]:
    """Yield the events of XML, without a gap; a new line is one, as is the end of an empty element. name: of the file.

    DataError for what is no XML, for entities that it declares, which no document needs, and which may be huge, and for
    more elements in each other than any document has.
    """
    parser = expat.ParserCreate("utf-8")

    def refuse(entity: str, *_: object) -> None:
        raise DataError(
            f"{name}:{parser.CurrentLineNumber}: it declares an entity ({entity}), which is not read; remove it"
        )

    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content.encode(), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise DataError(f"{name}:{error.lineno}: this is not XML ({reason})") from None
    depth = 0
    for match in _XML_TOKEN.finditer(content):
        event = _event(match)
        yield event
        depth += _STEPS.get(event.kind, 0)
        if depth > _MAX_DEPTH:
            line = content.count("\n", 0, event.start) + 1
            raise DataError(f"{name}:{line}: more than {_MAX_DEPTH} elements in each other")
        if event.kind == "start" and match[0].endswith("/>"):
            yield Event("end", event.name, {}, event.end, event.end)
            depth -= 1


def html_events(content: str) -> Iterator[Event]:
    """Yield the events of HTML, without a gap, as browsers would read it."""
    place = 0
    while match := _HTML_TOKEN.match(content, place):
        event = _event(match, str.lower)
        yield event
        place = event.end
        if event.kind == "start" and event.name in _SCRIPT_END and not match[0].endswith("/>"):
            end = _SCRIPT_END[event.name].search(content, place)
            assert end
            yield Event("text", "", {}, place, end.start(), content[place : end.start()])
            place = end.start()


def _event(match: re.Match[str], normal: Callable[[str], str] = str) -> Event:
    """Return the event of a token. normal: makes the same of all that a name may be written as."""
    kind, text = "other", ""
    if match.lastgroup == "attributes":
        kind = "end" if match["slash"] else "start"
    elif match.lastgroup:
        kind = "text"
        text = unescape(match[0]) if match.lastgroup == "text" else match["cdata"]
    attributes = dict[str, str]()
    for each in ATTRIBUTE.finditer(match["attributes"] or ""):
        # Of one that is there twice the first one counts.
        attributes.setdefault(normal(each[1]), unescape(each[each.lastgroup]) if each.lastgroup else "")
    return Event(kind, normal(match["name"] or ""), attributes, *match.span(), text)


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

    def add(self, part: str | Code, start: int, end: int, inside: Sequence[Text] = ()) -> None:
        """Add characters, or markup with the texts inside of it, whose raw is what the content has unless it is set."""
        self._items.append((part, start, end))
        if isinstance(part, Code):
            part.raw = part.raw or with_texts(self._content, inside, start, end)
            self._inside += inside

    def finish(self, reason: str = "") -> Iterator[Text]:
        """Yield the text, after those inside of it. Markup at its edges that is around none of it is left outside.

        reason: why it is left alone.
        """
        items, inside = self._trimmed(), self._inside
        self._items, self._inside = [], []
        if not items:
            yield from inside
            return
        (first, start, first_end), (last, last_start, end) = items[0], items[-1]
        if isinstance(first, str):
            start = first_end - len(self._content[start:first_end].lstrip(_BLANKS))
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
        items, codes = self._items, [part for part, _, _ in self._items if isinstance(part, Code)]
        closes = {id(codes[first]): codes[last] for first, last in pairs(codes).items()}
        paired, first, last = {*closes, *map(id, closes.values())}, 0, len(items)

        def is_around(part: str | Code, start: int, end: int) -> bool:
            if isinstance(part, Code):
                return not part.text and id(part) not in paired
            return not (part or self._content[start:end]).strip(_BLANKS)

        while first < last:
            if is_around(*items[first]):
                first += 1
            elif is_around(*items[last - 1]):
                last -= 1
            elif closes.get(id(items[first][0])) is items[last - 1][0]:
                first, last = first + 1, last - 1
            else:
                break
        return items[first:last]
