"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1)."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_file import XmlFile, has_language
from tolka.text.readers.xml_units import Unit

UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
"""States of targets that are no translation yet (XLIFF 1.2, section 2.3; 2.0, section 4.3.1.30)."""
_ACCEPTED = frozenset({"final", "signed-off"})  # whatever it was made from
# Qualifiers of targets that a person must look at before they are translations.
_DOUBTFUL = ("leveraged-mt", "mt-suggestion", "fuzzy-match", "tm-suggestion")


@register_reader(".xlf", ".xliff")
class XliffFile(XmlFile):
    """Sources and targets of units, or of XLIFF 2's segments; what nobody stands for is a flawed pair."""

    units, around = ("trans-unit", "unit"), ("xliff", "file", "group")
    inline_codes = frozenset({"bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "cp"})  # g, pc, mrk hold text

    def pairs_of(self, element: Element, unit: Unit) -> Iterator[Pair]:
        source = _first(unit.around, "source-language", "srcLang")
        target = _first(unit.around, "target-language", "trgLang")
        translate = _first([element, *unit.around], "translate")
        # Suggestions, and the source once more, are deeper inside.
        for segment in [element] if element.tag == "trans-unit" else element.iter("segment"):
            first, second = (self.text_of(segment.find(side), unit) for side in ("source", "target"))
            flaw = "not to be translated" if translate == "no" else _flaw_of(segment, second)
            if self._fits((source, target), self.direction):
                yield Pair(first, second, flaw)
            # A file from German to English serves a model from English to German as well.
            elif self._fits((source, target), self.direction.swapped):
                yield Pair(second, first, flaw)
            else:
                yield Pair(first, second, self.other_languages_flaw(f"from {source} to {target}"))

    def _fits(self, codes: tuple[str, str], direction: Direction) -> bool:
        """Return whether the file, by its codes, has the languages of a direction, or does not say."""
        sides = zip(codes, direction, strict=True)
        return all(not code or has_language(code, language, self.direction) for code, language in sides)


def _first(elements: Sequence[Element], *names: str) -> str:
    """Return the first value that an element has for one of these attributes; "" if none has."""
    return next((each.attrib[name] for each in elements for name in names if each.get(name)), "")


def _flaw_of(segment: Element, text: str) -> str:
    """Return why a target is no translation that somebody stands for; "" if it is one. text: the target's."""
    attributes = {"state": segment.get("state", ""), **getattr(segment.find("target"), "attrib", {})}
    state, qualifier = attributes["state"], attributes.get("state-qualifier", "")
    if not text or state in UNTRANSLATED:
        return "untranslated"
    # Most files leave out `approved`, which is "no" by default: only where it is said.
    is_doubtful = state.startswith("needs-") or qualifier in _DOUBTFUL or segment.get("approved") == "no"
    is_rejected = qualifier.startswith("rejected")
    return "not approved" if is_rejected or (is_doubtful and state not in _ACCEPTED) else ""
