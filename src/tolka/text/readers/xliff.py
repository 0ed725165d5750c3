"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1)."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from tolka.text.pairs import Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_file import XmlFile
from tolka.text.readers.xml_units import Unit

UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
"""States of targets that are no translation yet (XLIFF 1.2, section 2.3; 2.0, section 4.3.1.30)."""
_ACCEPTED = frozenset({"final", "signed-off"})  # whatever it was made from
_MACHINE, _SUGGESTED = frozenset({"leveraged-mt", "mt-suggestion"}), frozenset({"fuzzy-match", "tm-suggestion"})


@register_reader(".xlf", ".xliff")
class XliffFile(XmlFile):
    """Sources and targets of units, or of XLIFF 2's segments; what nobody stands for is a flawed pair."""

    units, around = ("trans-unit", "unit"), ("xliff", "file", "group")
    inline_codes = frozenset({"bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "cp"})  # g, pc, mrk hold text

    def pairs_of(self, element: Element, unit: Unit) -> Iterator[Pair]:
        around = [attributes for _, attributes in unit.around]  # the inner ones first
        source = _first(around, "source-language", "srcLang")
        target = _first(around, "target-language", "trgLang")
        translate = element.get("translate") or _first(around, "translate")
        # Suggestions, and the source once more, are deeper inside.
        for segment in [element] if element.tag == "trans-unit" else element.iter("segment"):
            first, second = (self.text_of(segment.find(side), unit) for side in ("source", "target"))
            flaw = "not to be translated" if translate == "no" else _flaw_of(segment, second)
            if self._fits(source, target, *self.direction):
                yield Pair(first, second, flaw)
            # A file from German to English serves a model from English to German as well.
            elif self._fits(source, target, *reversed(self.direction)):
                yield Pair(second, first, flaw)
            else:
                yield Pair(first, second, self.other_languages_flaw(f"from {source} to {target}"))

    def _fits(self, own_source: str, own_target: str, source: str, target: str) -> bool:
        """Return whether the file has these languages, or does not say."""
        pairs = (own_source, source), (own_target, target)
        return all(not code or self.has_language(code, language) for code, language in pairs)


def _first(around: list[dict[str, str]], *names: str) -> str:
    """Return the value that the innermost element with one of these attributes has for it; "" if none has."""
    return next((each[name] for each in around for name in names if each.get(name)), "")


def _flaw_of(segment: Element, text: str) -> str:
    """Return why a target is no translation that somebody stands for; "" if it is one. text: the target's."""
    target = segment.find("target")
    attributes = {} if target is None else target.attrib
    state, qualifier = attributes.get("state", segment.get("state", "")), attributes.get("state-qualifier", "")
    if not text or state in UNTRANSLATED:
        return "untranslated"
    if qualifier.startswith("rejected"):
        return "rejected"
    if state in _ACCEPTED:
        return ""
    if qualifier in _MACHINE:
        return "machine translation"
    if state.startswith("needs-") or qualifier in _SUGGESTED:
        return "needs review"
    # Most files leave out `approved`, which is "no" by default: only where it is said.
    return "not approved" if segment.get("approved") == "no" else ""
