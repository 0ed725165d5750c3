"""Translation memories (TMX 1.4): units that lack the target language get it."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event
from tolka.documents.text import Text
from tolka.documents.units import (
    TRANSLATED,
    Element,
    UnitDocument,
    blanks_before,
    elements,
    source_texts,
    with_attributes,
    with_target,
)
from tolka.text.direction import UNDETERMINED
from tolka.text.readers.xml_file import has_language


@DOCUMENTS.register("tmx")
class Tmx(UnitDocument):
    """The segments in the source language of units without one in the target language."""

    endings, root, units = (".tmx",), "tmx", frozenset({"tu"})

    def around(self, event: Event, name: str, content: str) -> Iterator[Text]:
        if name == "header" and event.kind == "start":
            self._source = event.attributes.get("srclang", "")
        return iter(())

    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        found = [
            (variant, segment)
            for _, variant in elements(unit.inside)
            if variant
            for _, segment in elements(variant.inside)
            if segment and segment.name == "seg"
        ]
        language = self.direction.source or unit.start.attributes.get("srclang", self._source)
        source, target = (self._in_language(found, each) for each in (language, self.direction.target))
        if language == "*all*":
            source = found[0] if found else None
        if source is None:
            for _, segment in found[:1]:
                yield from source_texts(segment, content, "in another language")
            return
        variant, segment = source
        if target and target[1].text.strip():
            yield from source_texts(segment, content, TRANSLATED)
            return
        own, name = variant.start, segment.start.name
        head, tail, start, end = f"<{name}>", f"</{name}>", variant.end.end, variant.end.end
        if target:
            start, end = target[1].start.start, target[1].end.end
        else:
            tag = {"xml:lang": self.direction.target or UNDETERMINED, "creationtool": "tolka"}
            head = blanks_before(own, content, unit.start.end) + with_attributes(f"<{own.name}>", tag) + head
            tail += f"</{own.name}>"
        outer = Text([], start, end, content[start:end])
        yield from with_target(source_texts(segment, content), segment, content, outer, head, tail)

    def _in_language(self, found: list[tuple[Element, Element]], language: str) -> tuple[Element, Element] | None:
        """Return the first variant in a language, with its segment."""
        for variant, segment in found:
            own = variant.start.attributes
            if has_language(own.get("xml:lang") or own.get("lang", ""), language, self.direction):
                return variant, segment
        return None
