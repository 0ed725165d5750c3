"""Translation memories (TMX 1.4): units that lack the target language get it."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Element, Event, attribute, elements
from tolka.documents.text import Text
from tolka.documents.units import TRANSLATED, UnitDocument, blanks_before, source_texts, with_target
from tolka.text.direction import UNDETERMINED
from tolka.text.readers.xml_file import has_language


@DOCUMENTS.register("tmx")
class Tmx(UnitDocument):
    """The segments in the source language of units without one in the target language."""

    endings, root, units = (".tmx",), "tmx", frozenset({"tu"})
    _source = ""

    def around(self, event: Event, name: str, content: str) -> Iterator[Text]:
        if name == "header" and event.kind == "start":
            self._source = event.attributes.get("srclang", "")
        return iter(())

    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        segments = [(each, seg) for each in elements(unit.inside) for seg in elements(each.inside) if seg.name == "seg"]
        # Of a unit that is for all languages, the first one stands for the source until the model's is known.
        language = self.direction.source or unit.start.attributes.get("srclang", self._source)
        of_source = [each for each in segments if self._is_in(language, each[0]) or language in ("", "*all*")]
        of_target = [each for variant, each in segments if self._is_in(self.direction.target, variant)]
        if not of_source:
            for _, segment in segments[:1]:
                yield from source_texts(segment, content, "in another language")
            return
        variant, source = of_source[0]
        if of_target and of_target[0].text.strip():
            yield from source_texts(source, content, TRANSLATED)
            return
        head, tail, place = "<seg>", "</seg>", (variant.end.end, variant.end.end)
        if of_target:
            place = of_target[0].start.start, of_target[0].end.end
        else:
            code = attribute(self.direction.target or UNDETERMINED)
            head = f'{blanks_before(variant.start, content)}<tuv xml:lang="{code}" creationtool="tolka"><seg>'
            tail += "</tuv>"
        yield from with_target(source_texts(source, content), source, content, place, head, tail)

    def _is_in(self, language: str, variant: Element) -> bool:
        own = variant.start.attributes
        return has_language(own.get("xml:lang") or own.get("lang", ""), language, self.direction)
