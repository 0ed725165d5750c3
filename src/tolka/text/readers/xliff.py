"""Translations on their way between programs (XLIFF 1.2, 2.0 and 2.1)."""

from tolka.text.pairs import Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_segment import SegmentText
from tolka.text.readers.xml_stream import UnitHandler, XmlFile

_INLINE_CODES = frozenset({"bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "cp"})  # g, pc and mrk hold text
_OTHER_TEXTS = frozenset({"alt-trans", "seg-source", "match", "glossEntry"})  # suggestions, and the source once more
_UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})


class _Units(UnitHandler):
    roots, units = frozenset({"xliff"}), frozenset({"trans-unit", "unit"})
    _of_file = ("", "")  # languages
    _texts: dict[str, SegmentText] | None = None  # of the current segment; None outside
    _state = ""
    _depth_of_others = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("xliff", "file"):
            source, target = self._of_file
            source = attributes.get("source-language") or attributes.get("srcLang") or source
            target = attributes.get("target-language") or attributes.get("trgLang") or target
            self._of_file = source, target
        elif name in ("trans-unit", "segment"):
            self._texts, self._state, self._depth_of_others = {}, attributes.get("state", ""), 0
        elif name in _OTHER_TEXTS:
            self._depth_of_others += 1
        elif name in ("source", "target") and self._texts is not None and not self._depth_of_others:
            self.text = self._texts[name] = SegmentText(self.limit)
            self._state = attributes.get("state", self._state)
        elif name in _INLINE_CODES and self.text is not None:
            kind = attributes.get("subType") or attributes.get("ctype") or attributes.get("type", "")
            self.text.open_code(name, kind.removeprefix("xlf:"))
            self.text.add(attributes.get("equiv-text", ""))

    def end(self, name: str) -> None:
        if name in _OTHER_TEXTS:
            self._depth_of_others -= 1
        elif name in ("source", "target") and not self._depth_of_others:
            self.text = None
        elif name in _INLINE_CODES and self.text is not None:
            self.text.close_code()
        elif name in ("trans-unit", "segment") and self._texts is not None:
            self.pairs.append(self._pair(self._texts))
            self._texts = None

    def _pair(self, texts: dict[str, SegmentText]) -> Pair:
        first, second = (texts[side].content() if side in texts else "" for side in ("source", "target"))
        # The state decides, not `approved`, which is "no" by default.
        flaw = next((text.flaw for text in texts.values() if text.flaw), "")
        if not second or self._state in _UNTRANSLATED:
            flaw = "untranslated"
        elif self._state.startswith("needs-"):
            flaw = "needs review"
        if self._fits(*self.direction):
            return Pair(first, second, flaw)
        # A file from German to English serves a model from English to German as well.
        if self._fits(*reversed(self.direction)):
            return Pair(second, first, flaw)
        return Pair(first, second, self.other_languages_flaw(f"from {self._of_file[0]} to {self._of_file[1]}"))

    def _fits(self, source: str, target: str) -> bool:
        """Return whether the file has these languages, or does not say."""
        pairs = zip(self._of_file, (source, target), strict=True)
        return all(not code or self.has_language(code, language) for code, language in pairs)


@register_reader(".xlf", ".xliff")
class XliffFile(XmlFile):
    """Sources and targets of units, or of XLIFF 2's segments; what is untranslated or needs review is a flawed pair."""

    handler = _Units
