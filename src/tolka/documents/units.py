"""Units of XML files of translations: their texts, and the targets that are made of them."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from tolka.documents.markup import Event, TextBuilder, attribute, xml_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_MAX_DEPTH = 100  # elements of a unit that are open at once
_STEPS = {"start": 1, "end": -1}
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")
_ATTRIBUTE = re.compile(r"""\s+([\w:.-]+)\s*=\s*(?:"[^"]*"|'[^']*')""")


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


def elements(events: Sequence[Event]) -> Iterator[Element]:
    """Yield the outermost elements, and the events between them."""
    depth = first = 0
    for number, event in enumerate(events):
        first = first if depth else number
        depth += _STEPS.get(event.kind, 0)
        if not depth:
            yield Element(events[first], events[first + 1 : number], event)


def segments(events: Sequence[Event]) -> Iterator[tuple[str, Element]]:
    """Yield the segments in a source or target (XLIFF 1.2, section 2.2.9), each after its name."""
    for element in elements(events):
        if element.start.attributes.get("mtype") == "seg":
            yield element.start.attributes.get("mid", ""), element
        else:
            yield from segments(element.inside)


class UnitDocument(SplicedDocument):
    """A file of units, each with a source, and with a target or a place for one."""

    errors = "xmlcharrefreplace"
    root: ClassVar[str]
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
            depth += _STEPS.get(event.kind, 0)
            if depth > _MAX_DEPTH:
                line = content.count("\n", 0, event.start) + 1
                raise DataError(f"{self.path}:{line}: more than {_MAX_DEPTH} elements in each other")
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


def source_texts(source: Element, content: str, reason: str = "", done: Mapping[str, str] = {}) -> Iterator[Text]:
    """Yield the texts of a source, one for each segment. reason: why they stay. done: segments that have a target."""
    builder, outside = TextBuilder(content), reason

    def added(parent: Element) -> Iterator[Text]:
        nonlocal outside
        for element in elements(parent.inside):
            start, inside, end = element
            own = start.attributes
            is_kept = own.get("mtype") == "protected" or own.get("translate") == "no"
            if start.kind != "start":
                builder.add(start.text if start.kind == "text" else Code([]), start.start, start.end)
            elif own.get("mtype") == "seg":
                outside = reason or "outside of segments"
                yield from builder.finish(outside)
                if translation := done.get(own.get("mid", "")):
                    yield Text([element.text], start.end, end.start, translation, reason=TRANSLATED)
                else:
                    yield from added(element)
                    yield from builder.finish(reason)
            elif element.name in _AROUND and not is_kept:
                builder.add(Code([], "open", element.name), start.start, start.end)
                yield from added(element)
                builder.add(Code([], "close", element.name), end.start, end.end)
            else:
                text = element.text.strip() if element.name in _AROUND else ""
                key = next((own[each] for each in ("rid", "startRef", "i", "id") if each in own), "")
                # A pair that is not whole in one element is none: it would cross the tags of that element.
                kind, name = "kept" if text else _KINDS.get(element.name, "lone"), f"{key} in {parent.start.start}"
                flows = [each for each in elements(inside) if each.name == "sub"]
                of_flows = [each for flow in flows for each in source_texts(flow, content, reason)]
                builder.add(Code([], kind, name, text), start.start, end.end, of_flows)

    yield from added(source)
    yield from builder.finish(outside)


def with_target(
    texts: Iterator[Text], source: Element, content: str, place: tuple[int, int], head: str, tail: str
) -> Iterator[Text]:
    """Yield the texts of a source, then the target at its place, which is made of them if one is translated.

    head, tail: what is written around the content of the target.
    """
    found, inside, cursor = list(texts), list[str | Text]([head]), source.start.end
    for text in found:
        if not text.nested:
            inside += [content[cursor : text.start], text]
            text.nested, cursor = True, text.end
    inside += [content[cursor : source.end.start], tail]
    yield from [*found, Text([], *place, content[slice(*place)], reason=EDIT, inside=inside)]


def blanks_before(event: Event, content: str) -> str:
    """Return the blanks before a tag, which a new one behind the element has before it as well."""
    start = content.rfind(">", 0, event.start) + 1
    return content[start : event.start] if content[start : event.start].isspace() else ""


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Return a start tag with other values of attributes, "" for none; without a slash at its end."""
    others = [match[0] for match in _ATTRIBUTE.finditer(tag) if match[1] not in values]
    new = [f' {key}="{attribute(value)}"' for key, value in values.items() if value]
    return "".join([*re.findall(r"^\W*<[^\s/>]+", tag), *others, *new, ">"])
