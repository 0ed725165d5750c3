"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1): units without a translation get one."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Event, attribute
from tolka.documents.text import EDIT, Text
from tolka.documents.units import (
    TRANSLATED,
    Element,
    UnitDocument,
    blanks_before,
    elements,
    segments,
    source_texts,
    with_attributes,
    with_target,
)
from tolka.errors import DataError
from tolka.text.readers.xliff import UNTRANSLATED
from tolka.text.readers.xml_file import has_language

_LANGUAGES = {"file": ("source-language", "target-language"), "xliff": ("srcLang", "trgLang")}
# A person sees who wrote it (XLIFF 1.2, section 2.3; XLIFF 2.0, section 4.3.1.30).
_OF_TARGET = {"state": "needs-review-translation", "state-qualifier": "leveraged-mt"}
_OF_SEGMENT = {"state": "translated", "subState": ""}


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
        pairs = zip(codes, self.direction, strict=True)
        if not all(not code or has_language(code, language, self.direction) for code, language in pairs):
            raise DataError(
                f"{self._line(event)}: the file is from {codes[0]} to {codes[1] or 'any language'}, and the model "
                f"translates from {self.direction}; take another model, or correct {' and '.join(keys)}"
            )
        if not codes[1]:
            place = content.index(event.name, event.start) + len(event.name)
            yield Text([], place, place, f' {keys[1]}="{attribute(self.direction.target)}"', reason=EDIT)

    def texts_of(self, unit: Element, content: str) -> Iterator[Text]:
        parts = {element.name: element for _, element in elements(unit.inside) if element}
        if "source" not in parts:
            return
        source, target = parts.get("seg-source", parts["source"]), parts.get("target")
        own = unit.start.attributes
        state = (target.start if target else unit.start).attributes.get("state", own.get("state", ""))
        has_text = target and target.text.strip() and state not in UNTRANSLATED
        of_target = segments(target.inside) if target and has_text else ()
        done = {name: content[each.start.end : each.end.start] for name, each in of_target if each.text.strip()}
        is_whole = has_text and not (done and {name for name, _ in segments(source.inside)} - done.keys())
        if own.get("translate", self._translate[-1]) == "no":
            yield from source_texts(source, content, "not to be translated")
        elif is_whole or own.get("approved") == "yes":
            yield from source_texts(source, content, TRANSLATED)
        else:
            yield from self._translated(unit, source, target, content, done)

    def _translated(
        self, unit: Element, source: Element, target: Element | None, content: str, done: dict[str, str]
    ) -> Iterator[Text]:
        """Yield the texts of a unit that gets a target."""
        start, end = unit.start.start, (target or source).end.end
        at = target.start.start if target else end
        of_unit, name = content[start : unit.start.end], parts_name(source.start.name)
        tag = content[target.start.start : target.start.end] if target else f"<{name}>"
        if unit.name == "segment":
            of_unit, tag = with_attributes(of_unit, _OF_SEGMENT), with_attributes(tag, {})
        else:
            tag = with_attributes(tag, _OF_TARGET)
        gap = "" if target else blanks_before(source.start, content, unit.start.end)
        head = f"{of_unit}{content[unit.start.end : at]}{gap}{tag}"
        outer = Text([], start, end, content[start:end])
        yield from with_target(source_texts(source, content, done=done), source, content, outer, head, f"</{name}>")


def parts_name(source: str) -> str:
    """Return the name of a target, with the prefix that a source has."""
    return f"{source[: -len(source.rpartition(':')[2])]}target"
