"""Translation memories (TMX 1.4)."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from tolka.text.pairs import FURTHER, Pair
from tolka.text.readers.base import register_reader
from tolka.text.readers.xml_file import XmlFile, has_language, normal_code
from tolka.text.readers.xml_units import Unit

_FURTHER = f"{FURTHER}variants not read"


@register_reader(".tmx")
class TmxFile(XmlFile):
    """A pair of each unit, and flawed ones of further variants. Inline codes are left out, highlighted text stays."""

    units, around = ("tu",), ("tmx", "body")
    inline_codes = frozenset({"bpt", "ept", "it", "ph", "ut"})

    def pairs_of(self, element: Element, unit: Unit) -> Iterator[Pair]:
        variants = [
            (normal_code(variant.get("xml:lang") or variant.get("lang") or ""), self.text_of(segment, unit))
            for variant in element.iter("tuv")
            for segment in variant.iter("seg")
        ]
        sides = [self._in_language(variants, language) for language in self.direction]
        if not all(sides):
            present = ", ".join(sorted({code for code, _ in variants})[:4])
            source, target = (side[0][1] if side else "" for side in sides)
            yield Pair(source, target, self.other_languages_flaw(f"in {present}"))
            return
        (_, source), *other_sources = sides[0]
        (_, target), *other_targets = sides[1]
        yield Pair(source, target)
        yield from (Pair(text, target, _FURTHER) for _, text in other_sources)
        yield from (Pair(source, text, _FURTHER) for _, text in other_targets)

    def _in_language(self, variants: list[tuple[str, str]], language: str) -> list[tuple[str, str]]:
        """Return the variants in a language, the one to read first: with exactly its code, or else the first."""
        found = [each for each in variants if has_language(each[0], language, self.direction)]
        return sorted(found, key=lambda each: each[0] != normal_code(language))
