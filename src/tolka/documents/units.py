"""Units of XML files of translations: their texts, and the targets that are made of them."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from tolka.documents.markup import ATTRIBUTE, STEPS, Event, TextBuilder, attribute, with_whole, xml_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = {"start": "open", "end": "close"}
_KINDS |= dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")


class Element(NamedTuple):
    """An element: its tags, and the events between them; or any other event, which is its own end."""

    start: Event
    inside: Sequence[Event]
    end: Event

    @property
    def text(self) -> str:
        """All characters in it."""
        return "".join(event.text for event in self.inside)


def elements(events: Sequence[Event]) -> Iterator[Element]:
    """Yield the outermost elements, and the events between them."""
    depth = first = 0
    for number, event in enumerate(events):
        first = first if depth else number
        depth += STEPS.get(event.kind, 0)
        if not depth:
            yield Element(events[first], events[first + 1 : number], event)


def local_name(event: Event) -> str:
    """Return the name of an element without a prefix."""
    return event.name.rpartition(":")[2]


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
            has_root = has_root or local_name(event) == self.root
            if not unit and not (event.kind == "start" and local_name(event) in self.units):
                yield from self.around(event, content)
                continue
            unit.append(event)
            depth += STEPS.get(event.kind, 0)
            if not depth:
                yield from self.texts_of(Element(unit[0], unit[1:-1], event), content)
                unit.clear()
        if not has_root:
            raise DataError(f"{self.path}: no <{self.root}> is in it; this is another kind of XML")

    @abstractmethod
    def around(self, event: Event, content: str) -> Iterator[Text]:
        """Yield what changes at an event outside of units."""

    @abstractmethod
    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        """Yield the texts of a unit."""


def source_texts(source: Element, content: str, reason: str = "") -> Iterator[Text]:
    """Yield the texts of a source, one for each segment in it (XLIFF 1.2, section 2.2.9). reason: why they stay."""
    builder, outside, opened = TextBuilder(content), reason, [source.start]
    for event in with_whole(source.inside, _is_whole):
        tag = opened.pop() if event.kind == "end" else event
        if event.kind == "text":
            builder.add(event.text, event.start, event.end)
        elif tag.attributes.get("mtype") == "seg":
            outside = reason or "outside of segments"
            yield from builder.finish(outside if event.kind == "start" else reason)
        else:
            name, text = local_name(event), event.text if local_name(event) in _AROUND else ""
            kind = "kept" if text else _KINDS.get(name if event.kind == "whole" else event.kind, "lone")
            # A pair that is not whole in one element is none: it would cross the tags of that element.
            keys = (tag.attributes.get(key) for key in ("rid", "startRef", "i", "id"))
            key = f"{next(filter(None, keys), '')} in {opened[-1].start}"
            builder.add(Code([], kind, key, text), event.start, event.end)
        if event.kind == "start":
            opened.append(event)
    yield from builder.finish(outside)


def _is_whole(event: Event) -> bool:
    """Return whether an element inside of a source stays as it is."""
    own = event.attributes
    return local_name(event) not in _AROUND or own.get("mtype") == "protected" or own.get("translate") == "no"


def with_target(
    texts: Iterator[Text], source: Element, content: str, place: tuple[int, int], head: str, tail: str
) -> Iterator[Text]:
    """Yield the texts of a source, then the target at its place, which is made of them if one is translated.

    head, tail: what is written around the content of the target.
    """
    found, inside, cursor = list(texts), list[str | Text]([head]), source.start.end
    for text in found:
        inside += [content[cursor : text.start], text]
        text.nested, cursor = True, text.end
    inside += [content[cursor : source.end.start], tail]
    yield from [*found, Text([], *place, content[slice(*place)], reason=EDIT, inside=inside)]


def blanks_before(event: Event, content: str) -> str:
    """Return the blanks before a tag, which a new one behind the element has before it as well."""
    before = content[content.rfind(">", 0, event.start) + 1 : event.start]
    return before if before.isspace() else ""


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Return a start tag with other values of attributes, "" for none; without a slash at its end."""
    others = [match[0] for match in ATTRIBUTE.finditer(tag) if match[1] not in values]
    new = [f' {key}="{attribute(value)}"' for key, value in values.items() if value]
    return "".join([*re.findall(r"^\W*<[^\s/>]+", tag), *others, *new, ">"])
