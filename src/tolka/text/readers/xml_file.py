"""XML files of translations: what their readers share."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property
from xml.etree.ElementTree import Element

from tolka.text.lines import read_blocks
from tolka.text.pairs import NO_PAIR, Pair
from tolka.text.readers.base import BothSides
from tolka.text.readers.xml_segment import segment_text
from tolka.text.readers.xml_units import Unit, read_units
from tolka.text.scripts import is_variety


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
    codes: Counter[tuple[str, str]]

    def read(self) -> Iterator[Pair]:
        self.codes = Counter[tuple[str, str]]()
        self._first_of_others = ""  # languages of the first unit that is not in both
        first_lines: dict[str, int] = {}  # what is not XML -> the first line with it
        for unit in read_units(self.path, [*self.units], [*self.around]):
            if unit.element is None:
                first = first_lines.setdefault(unit.reason, unit.line)
                reason = f"not XML ({unit.reason}; first in line {first})"
                yield Pair(f"{self.path}:{unit.line}", "", reason)
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

    def has_language(self, code: str, language: str) -> bool:
        """Return whether a text with this code is one in the source's or the target's language."""
        code, language = normal_code(code), normal_code(language)
        return code == language or (not self._are_varieties and is_variety(code, language))

    @cached_property
    def _are_varieties(self) -> bool:
        """Whether the languages of both sides are varieties of one, as en-GB and en-US are."""
        return is_variety(*map(normal_code, self.direction))

    def other_languages_flaw(self, languages: str) -> str:
        """Return the flaw of a unit that is not in both languages. languages: its own, in words."""
        self._first_of_others = self._first_of_others or languages
        return f"{NO_PAIR}{' and '.join(self.direction)} (the first such unit is {self._first_of_others})"

    def count(self) -> int:
        """Return the number of start tags of units, which is about that of pairs."""
        return self._start_tags

    @cached_property
    def _start_tags(self) -> int:
        unit = re.compile(rf"<(?:\w+:)?(?:{'|'.join(self.counted or self.units)})[>\s]".encode())
        return sum(len(unit.findall(block)) for block in read_blocks(self.path))


def normal_code(code: str) -> str:
    """Return a language code as all are compared: en-gb for en_GB."""
    return code.replace("_", "-").lower()
