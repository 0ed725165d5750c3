"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1): units without a translation get one."""

from collections.abc import Iterator

from tolka.documents.base import DOCUMENTS
from tolka.documents.markup import Element, Event, attribute, elements, with_attributes
from tolka.documents.text import EDIT, Text
from tolka.documents.units import TRANSLATED, UnitDocument, blanks_before, source_texts, with_target
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
