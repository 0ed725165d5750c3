"""Units of XML files of translations: their texts, and the targets that are made of them."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from tolka.documents.markup import Event, TextBuilder, attribute, xml_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_MAX_DEPTH = 100  # elements of a unit that are open at once
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")
_PAIRED_BY = ("rid", "startRef", "i", "id")
_ATTRIBUTE = re.compile(r"""\s+([\w:.-]+)\s*=\s*(?:"[^"]*"|'[^']*')""")


class Element(NamedTuple):
    """An element: its tags, and the events between them."""

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

    @property
    def segment(self) -> str | None:
        """The name of the segment that it is (XLIFF 1.2, section 2.2.9), None if it is none."""
        is_one = self.name == "mrk" and self.start.attributes.get("mtype") == "seg"
        return self.start.attributes.get("mid", "") if is_one else None


def elements(events: Sequence[Event]) -> Iterator[tuple[Event, Element | None]]:
    """Yield what is outermost: events that are of no element, and the first event of each element with the element."""
    depth = first = 0
    for number, event in enumerate(events):
        first = first if depth else number
        depth += {"start": 1, "end": -1}.get(event.kind, 0)
        if not depth:
            is_element = event.kind == "end"
            yield events[first], Element(events[first], events[first + 1 : number], event) if is_element else None


def segments(events: Sequence[Event]) -> Iterator[tuple[str, Element]]:
    """Yield the segments in a source or target, each after its name."""
    for _, element in elements(events):
        if element and element.segment is not None:
            yield element.segment, element
        elif element:
            yield from segments(element.inside)


class UnitDocument(SplicedDocument):
    """A file of units, each with a source, and with a target or a place for one."""

    errors, root = "xmlcharrefreplace", ""
    units: ClassVar[frozenset[str]]

    def declared(self, raw: bytes) -> str:
        return codec_of(declared_encoding(raw, self.path)) or "utf-8"

    def find(self, content: str) -> Iterator[Text]:
        unit, depth, has_root = list[Event](), 0, False
        for event in xml_events(content, str(self.path)):
            name = event.name.rpartition(":")[2]
            has_root = has_root or name == self.root
            if not unit and not (event.kind == "start" and name in self.units):
                yield from self.around(event, name, content)
                continue
            unit.append(event)
            depth += {"start": 1, "end": -1}.get(event.kind, 0)
            if depth > _MAX_DEPTH:
                raise DataError(f"{self._line(event)}: more than {_MAX_DEPTH} elements in each other")
            if not depth:
                yield from self.texts_of(Element(unit[0], unit[1:-1], event), content)
                unit.clear()
        if not has_root:
            raise DataError(f"{self.path}: no <{self.root}> is in it; this is another kind of XML")

    @abstractmethod
    def around(self, event: Event, name: str, content: str) -> Iterator[Text]:
        """Yield what changes at an event outside of units. name: of its element, without a prefix."""

    @abstractmethod
    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        """Yield the texts of a unit."""

    def _line(self, event: Event) -> str:
        return f"{self.path}:{self._content.count(chr(10), 0, event.start) + 1}"


def source_texts(source: Element, content: str, reason: str = "", done: Mapping[str, str] = {}) -> Iterator[Text]:
    """Yield the texts of a source, one for each segment. reason: why they stay. done: segments that have a target."""
    builder = TextBuilder(content)
    outside = reason or ("outside of segments" if any(segments(source.inside)) else "")
    yield from _added(builder, source, content, outside, reason, done)
    yield from builder.finish(outside)


def _added(
    builder: TextBuilder, parent: Element, content: str, outside: str, reason: str, done: Mapping[str, str]
) -> Iterator[Text]:
    """Add what is inside of an element to a builder; yield the texts that end in it."""
    for event, element in elements(parent.inside):
        if element is None:
            part = event.text if event.kind == "text" else Code([])
            builder.add(part, event.start, event.end)
            continue
        start, _, end = element
        own = start.attributes
        is_kept = own.get("mtype") == "protected" or own.get("translate") == "no"
        if element.segment is not None:
            yield from builder.finish(outside)
            if element.segment in done:
                yield Text([element.text], start.end, end.start, done[element.segment], reason=TRANSLATED)
            else:
                yield from _added(builder, element, content, reason, reason, done)
                yield from builder.finish(reason)
        elif element.name in _AROUND and not is_kept:
            builder.add(Code([], "open", element.name), start.start, start.end)
            yield from _added(builder, element, content, outside, reason, done)
            builder.add(Code([], "close", element.name), end.start, end.end)
        else:
            text = element.text.strip() if element.name in _AROUND else ""
            kind = "kept" if text else _KINDS.get(element.name, "lone")
            key = next((own[each] for each in _PAIRED_BY if each in own), "")
            # A pair that is not whole in one element is none: it would cross the tags of that element.
            code = Code([], kind, f"{key} in {parent.start.start}", text)
            flows = [each for _, each in elements(element.inside) if each and each.name == "sub"]
            inside = [text for flow in flows for text in source_texts(flow, content, reason)]
            builder.add(code, start.start, end.end, inside)


def with_target(
    texts: Iterable[Text], source: Element, content: str, target: Text, head: str, tail: str
) -> Iterator[Text]:
    """Yield the texts of a source, then the target, an edit that is made of them as soon as one is translated.

    head, tail: what is written around the content of the target.
    """
    found, pieces, place = list(texts), list[str](), source.start.end

    def finish(translation: str, number: int) -> str:
        pieces[number] = translation
        target.written = "".join([head, *pieces, tail])
        return translation

    for text in found:
        if not text.nested:
            pieces += [content[place : text.start], text.written]
            text.nested, text.finish, place = True, partial(finish, number=len(pieces) - 1), text.end
    pieces.append(content[place : source.end.start])
    target.reason = EDIT
    yield from [*found, target]


def blanks_before(event: Event, content: str, start: int) -> str:
    """Return the blanks before an event, which a new element behind it has as well. start: how far to look back."""
    before = content[start : event.start]
    return before[len(before.rstrip()) :]


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Return a start tag with other values of attributes, "" for none; without a slash at its end."""
    name = re.findall(r"<[^\s/>]+", tag)[0]
    others = [match[0] for match in _ATTRIBUTE.finditer(tag) if match[1] not in values]
    return "".join([name, *others, *(f' {key}="{attribute(value)}"' for key, value in values.items() if value), ">"])
