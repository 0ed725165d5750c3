"""Units of XML files of translations: their texts, and the targets that are made of them."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tolka.documents.markup import Element, Event, TextBuilder, elements, with_texts, xml_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")


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
        events, has_root = xml_events(content, str(self.path)), False
        for element in elements(events, lambda event: event.name.rpartition(":")[2] in self.units):
            has_root = has_root or element.name == self.root
            if element.name in self.units:
                yield from self.texts_of(element, content)
            else:
                yield from self.around(element.start, element.name, content)
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
    found = list(texts)
    inside = [head, *with_texts(content, found, source.start.end, source.end.start), tail]
    for text in found:
        text.nested = True
    yield from [*found, Text([], *place, content[slice(*place)], reason=EDIT, inside=inside)]


def blanks_before(event: Event, content: str) -> str:
    """Return the blanks before a tag, which a new one behind the element has before it as well."""
    start = content.rfind(">", 0, event.start) + 1
    return content[start : event.start] if content[start : event.start].isspace() else ""
