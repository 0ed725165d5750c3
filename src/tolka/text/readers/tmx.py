"""Translation memories (TMX 1.4)."""

from tolka.text.pairs import FURTHER, Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_segment import SegmentText
from tolka.text.readers.xml_stream import UnitHandler, XmlFile, normal_code

_INLINE_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # they contain markup of the original document
_FURTHER = f"{FURTHER}variants not read"


class _Units(UnitHandler):
    roots, units = frozenset({"tmx"}), frozenset({"tu"})
    _language = ""

    def begin(self) -> None:
        self._variants: list[tuple[str, str, str]] = []  # of the current unit: language code, text, flaw

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tuv":
            self._language = normal_code(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name == "seg":
            self.text = SegmentText(self.limit)
        elif name in _INLINE_CODES and self.text is not None:
            self.text.open_code(name, attributes.get("type", ""))

    def end(self, name: str) -> None:
        if name == "seg" and self.text is not None:
            self._variants.append((self._language, self.text.content(), self.text.flaw))
            self.text = None
        elif name in _INLINE_CODES and self.text is not None:
            self.text.close_code()
        elif name == "tu":
            self._end_unit()

    def _end_unit(self) -> None:
        """Add the pair of a unit, and a flawed one for each further variant of a language."""
        sides = [self._of_language(language) for language in self.direction]
        if not all(sides):
            present = ", ".join(sorted({code for code, _, _ in self._variants})[:4])
            source, target = (side[0][1] if side else "" for side in sides)
            self.pairs.append(Pair(source, target, self.other_languages_flaw(f"in {present}")))
            return
        sources, targets = sides
        (code, source, flaw), (code_of_target, target, flaw_of_target) = sources[0], targets[0]
        self.codes.update(zip(self.direction, (code, code_of_target), strict=True))
        self.pairs.append(Pair(source, target, flaw or flaw_of_target))
        self.pairs += [Pair(text, target, _FURTHER) for _, text, _ in sources[1:]]
        self.pairs += [Pair(source, text, _FURTHER) for _, text, _ in targets[1:]]

    def _of_language(self, language: str) -> list[tuple[str, str, str]]:
        """Return the variants in a language, the one to read first: with exactly its code, or else the first."""
        variants = [each for each in self._variants if self.has_language(each[0], language)]
        return sorted(variants, key=lambda each: each[0] != normal_code(language))


@register_reader(".tmx")
class TmxFile(XmlFile):
    """A pair of each unit, and flawed ones of further variants. Inline codes are left out, highlighted text stays."""

    handler = _Units
