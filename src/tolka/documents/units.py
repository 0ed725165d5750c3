"""Units of translation memories (TMX 1.4) and of XLIFF 1.2, 2.0 and 2.1: those without a target get one."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import (
    Element,
    Event,
    TextBuilder,
    attribute,
    elements,
    with_attributes,
    with_texts,
    xml_events,
)
from tolka.documents.spliced import SplicedDocument
from tolka.documents.text import EDIT, Code, Text
from tolka.errors import DataError
from tolka.text.direction import UNDETERMINED
from tolka.text.encodings import codec_of
from tolka.text.readers.xml_file import UNTRANSLATED, has_language
from tolka.text.readers.xml_units import declared_encoding

TRANSLATED = "translated already"
_AROUND = frozenset({"g", "pc", "mrk", "hi"})  # elements with text in them; in all others it is code
_KINDS = {"start": "open", "end": "close"}
_KINDS |= dict.fromkeys(("bx", "bpt", "sc", "sm"), "open") | dict.fromkeys(("ex", "ept", "ec", "em"), "close")
_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
# A person sees who wrote it (XLIFF 1.2, section 2.3; XLIFF 2.0, section 4.3.1.30).
_OF_TARGET = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
_OF_SEGMENT = {"state": "translated", "subState": ""}


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


@DOCUMENTS.register("xliff")
class Xliff(UnitDocument):
    """The sources of units, or of XLIFF 2's segments, that have no target, or one whose state says that it is none."""

    endings, root, units = (".xlf", ".xliff", ".sdlxliff"), "xliff", frozenset({"trans-unit", "segment"})

    def find(self, content: str) -> Iterator[Text]:
        self._translate = ["yes"]  # of the elements that are open
        return super().find(content)

    def around(self, event: Event, name: str, content: str) -> Iterator[Text]:
        if event.kind == "end":
            self._translate.pop()
        if event.kind != "start":
            return
        self._translate.append(event.attributes.get("translate", self._translate[-1]))
        keys = _LANGUAGES.get(name, ("", ""))
        codes = [event.attributes.get(key, "") for key in keys]
        if not self.direction.is_known or not codes[0]:
            return
        for key, code, language in zip(keys, codes, self.direction, strict=True):
            if code and not has_language(code, language, self.direction):
                line = content.count("\n", 0, event.start) + 1
                raise DataError(
                    f"{self.path}:{line}: {key} is {code}, and the model translates from {self.direction}; take "
                    "another model, or correct it if it is wrong"
                )
        if not codes[1]:
            place = content.index(event.name, event.start) + len(event.name)
            yield Text([], place, place, f' {keys[1]}="{attribute(self.direction.target)}"', reason=EDIT)

    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        parts, own = {each.name: each for each in elements(unit.inside)}, unit.start.attributes
        if "source" not in parts:
            return
        source, target = parts.get("seg-source", parts["source"]), parts.get("target")
        state = (target or unit).start.attributes.get("state", own.get("state"))
        if own.get("translate", self._translate[-1]) == "no":
            yield from source_texts(source, content, "not to be translated")
            return
        if own.get("approved") == "yes" or (target and target.text.strip() and state not in UNTRANSLATED):
            yield from source_texts(source, content, TRANSLATED)
            return
        prefix = unit.start.name.removesuffix(unit.name)
        start, end = unit.start.start, (target or source).end.end
        at, gap = (target.start.start, "") if target else (end, blanks_before(source.start, content))
        of_unit = content[start : unit.start.end]
        tag = content[at : target.start.end].removesuffix("/>") if target else f"<{prefix}target>"
        if unit.name == "segment":
            of_unit, tag = with_attributes(of_unit, _OF_SEGMENT), with_attributes(tag, {})
        else:
            tag = with_attributes(tag, _OF_TARGET)
        head, tail = f"{of_unit}{content[unit.start.end : at]}{gap}{tag}", f"</{prefix}target>"
        yield from with_target(source_texts(source, content), source, content, (start, end), head, tail)
