"""Units of XML files of translations: their texts, and the targets that are made of them."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from tolka.documents.markup import Element, Event, TextBuilder, elements, with_texts, xml_events
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = {"start": "open", "end": "close"}
_KINDS |= dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")


class UnitDocument(SplicedDocument):
    """A file of units, each with a source, and with a target or a place for one."""

    errors = "xmlcharrefreplace"
    root: ClassVar[str]
    units: ClassVar[frozenset[str]]

    def declared(self, raw: bytes) -> str:
        return codec_of(declared_encoding(raw, self.path)) or "utf-8"

    def find(self, content: str) -> Iterator[Text]:
        events, has_root = xml_events(content, str(self.path)), False
        for element in elements(events, lambda start: start.name.rpartition(":")[2] in self.units):
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


def source_texts(source: Element, content: str, reason: str = "") -> Iterator[Text]:
    """Yield the texts of a source, one for each segment in it (XLIFF 1.2, section 2.2.9). reason: why they stay."""
    builder, outside, opened = TextBuilder(content), reason, [source.start]
    for element in elements(source.inside, _is_whole):
        event = element.start
        tag = opened.pop() if event.kind == "end" else event
        if event.kind == "text":
            builder.add(event.text, event.start, event.end)
        elif tag.attributes.get("mtype") == "seg":
            outside = reason or "outside of segments"
            yield from builder.finish(outside if event.kind == "start" else reason)
        else:
            is_tag = element.end is event
            text = element.text.strip() if element.name in _AROUND else ""
            kind = "kept" if text else _KINDS.get(event.kind if is_tag else element.name, "lone")
            # A pair that is not whole in one element is none: it would cross the tags of that element.
            keys = (tag.attributes.get(key) for key in ("rid", "startRef", "i", "id"))
            key = f"{next(filter(None, keys), '')} in {opened[-1].start}"
            builder.add(Code([], kind, key, text), event.start, element.end.end)
        if event.kind == "start" and element.end is event:
            opened.append(event)
    yield from builder.finish(outside)


def _is_whole(event: Event) -> bool:
    """Return whether an element inside of a source stays as it is."""
    own, name = event.attributes, event.name.rpartition(":")[2]
    return name not in _AROUND or own.get("mtype") == "protected" or own.get("translate") == "no"


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
    before = content[content.rfind(">", 0, event.start) + 1 : event.start]
    return before if before.isspace() else ""
