"""XML files of translations: memories (TMX 1.4), and what is on its way between programs (XLIFF 1.2, 2.0 and 2.1).

Also what their readers share, and the text of a segment without its inline codes.
"""

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from xml.etree.ElementTree import Element

from tolka.text.direction import Direction
from tolka.text.lines import read_blocks
from tolka.text.pairs import FURTHER, NO_PAIR, Pair
from tolka.text.readers.base import BothSides, register_reader
from tolka.text.readers.xml_units import Unit, read_units
from tolka.text.scripts import is_variety

# Codes that stand alone; the others (bpt, ept, it, hi, g, bx, sc ...) are begin or end of what they mark.
_LONE_CODES = frozenset({"ph", "x", "ut"})
# Types of TMX 1.4b and XLIFF 1.2, and what Trados, memoQ and OmegaT call theirs.
_BREAK_TYPES = frozenset(
    {"lb", "pb", "cb", "image", "struct", "x-tab", "x-lb", "x-br", "x-img", "x-image", "x-html-br"}
)
_BREAK_TYPES |= frozenset({"br", "img", "tab", "linebreak", "x-linebreak", "x-line_break", "fmt:br"})
_FORMATTING_TYPES = frozenset(
    {"bold", "italic", "underlined", "ulined", "dulined", "font", "color", "scap", "link", "fmt", "b", "i", "u"}
    | {"x-b", "x-i", "x-u", "x-a", "x-em", "x-strong", "x-span"}
)
# Content of codes: tags of HTML and of office documents, controls of RTF, and escaped or real white space.
_BREAK = re.compile(
    r"\s*(?:</?(?:(?:\w+:)?(?:br|hr|p|div|li|[uo]l|t[drh]|table|h[1-6]|img|image|tab|line-break|lb|pb)|text:s)\b"
    r"|\\(?:[nt]$|r\\n|line\b|tab\b|par\b|page\b))|\s*[\n\t\r]\s*$",
    re.IGNORECASE,
)
_FORMATTING = re.compile(
    r"\s*(?:</?(?:b|i|u|s|em|strong|span|font|a|cf|sub|sup|small|big|tt|code|del|ins|mark)\b|\{?\\(?:b|i|ul|cs\d*|f)\d*\b"
    r"|\})",
    re.IGNORECASE,
)
# Text that both sides have: %s, %1$d, %(name)s, %name%, {0}, {{ name }}, ${name}, $name$.
_PLACEHOLDER = re.compile(
    r"%(?:\d+\$)?(?:\(\w+\))?[-+#0]*\d*(?:\.\d+)?[a-zA-Z@]|%\w+%|\$?\{\{?\s*[\w.]+\s*\}\}?|\$\w+\$"
)
_BETWEEN_LETTERS = re.compile(r"(?<=\w)\0+(?=\w)")
_FURTHER_VARIANTS = f"{FURTHER}variants not read"
UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
"""States of targets that are no translation yet (XLIFF 1.2, section 2.3; 2.0, section 4.3.1.30)."""
_ACCEPTED = frozenset({"final", "signed-off"})  # whatever it was made from
# Qualifiers of targets that a person must look at before they are translations.
_DOUBTFUL = ("leveraged-mt", "mt-suggestion", "fuzzy-match", "tm-suggestion")
# Where a code was that is neither a break nor formatting: XML cannot have this character.
_JOINT = "\0"


class XmlFile(BothSides):
    """A file of translation units; one that is not XML is a flawed pair.

    units: names of their elements. around: names of elements around them, the root's first. counted: of the elements
    that stand for a pair, if not of units. inline_codes: of elements that contain markup of the original document.
    """

    has_columns = False
    version = "4"
    units: Collection[str]
    around: Collection[str]
    counted: Collection[str] = ()
    inline_codes: Collection[str] = ()

    def read(self) -> Iterator[Pair]:
        self._first_of_others = ""  # languages of the first unit that is not in both
        first_lines: dict[str, int] = {}  # what is not XML -> the first line with it
        for unit in read_units(self.path, [*self.units], [*self.around]):
            if unit.element is None:
                first = first_lines.setdefault(unit.reason, unit.line)
                yield Pair(f"{self.path}:{unit.line}", "", f"not XML ({unit.reason}; first in line {first})")
            else:
                yield from self.pairs_of(unit.element, unit)

    @abstractmethod
    def pairs_of(self, element: Element, unit: Unit) -> Iterator[Pair]:
        """Yield the pairs of a unit, those with a flaw, too."""

    def text_of(self, segment: Element | None, unit: Unit) -> str:
        """Return the text of a segment, "" if there is none; DataError if it is too long."""
        text = "" if segment is None else segment_text(segment, self.inline_codes)
        self.limit.check(text, f"{self.path}:{unit.line}", "a segment")
        return text

    def other_languages_flaw(self, languages: str) -> str:
        """Return the flaw of a unit that is not in both languages. languages: its own, in words."""
        self._first_of_others = self._first_of_others or languages
        return f"{NO_PAIR}{' and '.join(self.direction)} (the first such unit is {self._first_of_others})"

    def count(self) -> int:
        """Return the number of start tags of units, which is about that of pairs."""
        unit = re.compile(rf"<(?:\w+:)?(?:{'|'.join(self.counted or self.units)})[>\s]".encode())
        return sum(len(unit.findall(block)) for block in read_blocks(self.path))


def has_language(code: str, language: str, direction: Direction) -> bool:
    """Return whether a text with this code is one in a language of a direction."""
    code, language = normal_code(code), normal_code(language)
    # Not where both sides are in varieties of one language, as en-GB and en-US are.
    return code == language or (is_variety(code, language) and not is_variety(*map(normal_code, direction)))


@lru_cache(maxsize=1000)
def normal_code(code: str) -> str:
    """Return a language code as all are compared: en-gb for en_GB."""
    return code.replace("_", "-").lower()


def segment_text(segment: Element, codes: Collection[str]) -> str:
    """Return the text of a segment with single blanks, without its inline codes. codes: names of their elements."""
    return single_spaced(_BETWEEN_LETTERS.sub(" ", "".join(_texts(segment, codes))).replace(_JOINT, ""))


def _texts(element: Element, codes: Collection[str]) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in codes:
            yield _text_of_code(child)
        else:
            yield from _texts(child, codes)
        yield child.tail or ""


def _text_of_code(code: Element) -> str:
    """Return the text that stands in place of an inline code."""
    # A break, a tab or an image is a blank to a reader, and formatting nothing: H<b>e</b>llo is one word. A code that
    # stands alone is a placeholder, or else parts two letters, and leaves no blank elsewhere.
    kind = (code.get("subType") or code.get("ctype") or code.get("type") or "").removeprefix("xlf:").lower()
    content = "".join(code.itertext()) + (code.get("equiv-text") or code.get("equiv") or "")
    if kind in _BREAK_TYPES or _BREAK.match(content):
        return " "
    if code.tag not in _LONE_CODES or kind in _FORMATTING_TYPES or _FORMATTING.match(content):
        return ""
    return content.strip() if _PLACEHOLDER.fullmatch(content.strip()) else _JOINT


def single_spaced(text: str) -> str:
    """Return the text with a single blank for what XML takes for one; a no-break space is a character as any other."""
    return " ".join(re.findall(r"[^ \t\r\n]+", text))


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
        yield from (Pair(text, target, _FURTHER_VARIANTS) for _, text in other_sources)
        yield from (Pair(source, text, _FURTHER_VARIANTS) for _, text in other_targets)

    def _in_language(self, variants: list[tuple[str, str]], language: str) -> list[tuple[str, str]]:
        """Return the variants in a language, the one to read first: with exactly its code, or else the first."""
        found = [each for each in variants if has_language(each[0], language, self.direction)]
        return sorted(found, key=lambda each: each[0] != normal_code(language))


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
