"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1)."""

from tolka.text.pairs import Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_segment import SegmentText
from tolka.text.readers.xml_stream import UnitHandler, XmlFile

_INLINE_CODES = frozenset({"bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "cp"})  # g, pc and mrk hold text
_OTHER_TEXTS = frozenset({"alt-trans", "seg-source", "match", "glossEntry"})  # suggestions, and the source once more
_UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
_ACCEPTED = frozenset({"final", "signed-off"})  # whatever it was made from
_MACHINE, _SUGGESTED = frozenset({"leveraged-mt", "mt-suggestion"}), frozenset({"fuzzy-match", "tm-suggestion"})


class _Units(UnitHandler):
    roots, units = frozenset({"xliff"}), frozenset({"trans-unit", "unit"})
    _of_file = ("", "")  # languages
    _texts: dict[str, SegmentText] | None = None  # of the current segment; None outside
    _state, _qualifier, _approved = "", "", ""
    _depth_of_others = 0
    _translate: tuple[str, ...] = ("yes",)  # of the open files and groups, which a unit inherits
    _translate_unit = "yes"

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("xliff", "file"):
            source, target = self._of_file
            source = attributes.get("source-language") or attributes.get("srcLang") or source
            target = attributes.get("target-language") or attributes.get("trgLang") or target
            self._of_file = source, target
        if name in ("file", "group"):
            self._translate += (attributes.get("translate", self._translate[-1]),)
        if name in self.units:
            self._translate_unit = attributes.get("translate", self._translate[-1])
        if name in ("trans-unit", "segment"):
            self._texts, self._state, self._depth_of_others = {}, attributes.get("state", ""), 0
            self._approved, self._qualifier = attributes.get("approved", ""), ""
        elif name in _OTHER_TEXTS:
            self._depth_of_others += 1
        elif name in ("source", "target") and self._texts is not None and not self._depth_of_others:
            self.text = self._texts[name] = SegmentText(self.limit)
            self._state = attributes.get("state", self._state)
            self._qualifier = attributes.get("state-qualifier", self._qualifier)
        elif name in _INLINE_CODES and self.text is not None:
            kind = attributes.get("subType") or attributes.get("ctype") or attributes.get("type", "")
            self.text.open_code(name, kind.removeprefix("xlf:"))
            self.text.add(attributes.get("equiv-text") or attributes.get("equiv", ""))

    def end(self, name: str) -> None:
        if name in _OTHER_TEXTS:
            self._depth_of_others -= 1
        elif name in ("file", "group"):
            self._translate = self._translate[:-1]
        elif name in ("source", "target") and not self._depth_of_others:
            self.text = None
        elif name in _INLINE_CODES and self.text is not None:
            self.text.close_code()
        elif name in ("trans-unit", "segment") and self._texts is not None:
            self.pairs.append(self._pair(self._texts))
            self._texts = None

    def _pair(self, texts: dict[str, SegmentText]) -> Pair:
        first, second = (texts[side].content() if side in texts else "" for side in ("source", "target"))
        flaw = self._flaw_of(second) or next((text.flaw for text in texts.values() if text.flaw), "")
        if self._fits(*self.direction):
            return Pair(first, second, flaw)
        # A file from German to English serves a model from English to German as well.
        if self._fits(*reversed(self.direction)):
            return Pair(second, first, flaw)
        return Pair(first, second, self.other_languages_flaw(f"from {self._of_file[0]} to {self._of_file[1]}"))

    def _flaw_of(self, target: str) -> str:
        """Return why a target is no translation that somebody stands for; "" if it is one."""
        if self._translate_unit == "no":
            return "not to be translated"
        if not target or self._state in _UNTRANSLATED:
            return "untranslated"
        if self._qualifier.startswith("rejected"):
            return "rejected"
        if self._state in _ACCEPTED:
            return ""
        if self._qualifier in _MACHINE:
            return "machine translation"
        if self._state.startswith("needs-") or self._qualifier in _SUGGESTED:
            return "needs review"
        # Most files leave out `approved`, which is "no" by default: only where it is said.
        return "not approved" if self._approved == "no" else ""

    def _fits(self, source: str, target: str) -> bool:
        """Return whether the file has these languages, or does not say."""
        pairs = zip(self._of_file, (source, target), strict=True)
        return all(not code or self.has_language(code, language) for code, language in pairs)


@register_reader(".xlf", ".xliff")
class XliffFile(XmlFile):
    """Sources and targets of units, or of XLIFF 2's segments; what nobody stands for is a flawed pair."""

    handler = _Units
