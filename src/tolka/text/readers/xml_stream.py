"""XML files of translations: the contract of their readers."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from tolka.text.direction import Direction
from tolka.text.lines import LineLimit, read_blocks
from tolka.text.pairs import NO_PAIR, Pair
from tolka.text.readers.base import BothSides
from tolka.text.readers.xml_parser import TAG_BYTES, XmlHandler, parse
from tolka.text.scripts import is_variety


class UnitHandler(XmlHandler):
    """Collects the pairs of a file of units. counted: names of the elements that stand for a pair, if not of units."""

    counted: frozenset[str] = frozenset()

    def __init__(self, path: Path, direction: Direction, limit: LineLimit) -> None:
        """direction: of the pairs that are read."""
        self.direction, self.limit = direction, limit
        self._are_varieties = is_variety(*map(normal_code, direction))  # as en-GB and en-US are
        self.codes: Counter[tuple[str, str]] = Counter()  # of the texts read: the language asked for, and their own
        self.pairs: list[Pair] = []  # of the units parsed so far that nobody has taken yet
        self._path = path
        self._first_lines: dict[str, int] = {}  # what is not XML -> the first line with it
        self._first_of_others = ""  # languages of the first unit that is not in both
        self.begin()  # for a text outside of units, in a file that is damaged

    def has_language(self, code: str, language: str) -> bool:
        """Return whether a text with this code is one in the source's or the target's language."""
        code, language = normal_code(code), normal_code(language)
        return code == language or (not self._are_varieties and is_variety(code, language))

    def give_up(self, line: int, reason: str) -> None:
        """Add a flawed pair in place of a unit that is not XML, with its place as the source."""
        first = self._first_lines.setdefault(reason, line)
        self.pairs.append(Pair(f"{self._path}:{line}", "", f"not XML ({reason}; first in line {first})"))

    def other_languages_flaw(self, languages: str) -> str:
        """Return the flaw of a unit that is not in both languages. languages: its own, in words."""
        self._first_of_others = self._first_of_others or languages
        return f"{NO_PAIR}{' and '.join(self.direction)} (the first such unit is {self._first_of_others})"


def normal_code(code: str) -> str:
    """Return a language code as all are compared: en-gb for en_GB."""
    return code.replace("_", "-").lower()


class XmlFile(BothSides):
    """A file of translation units; one that is not XML is a flawed pair."""

    has_columns = False
    version = "3"
    handler: type[UnitHandler]

    def read(self) -> Iterator[Pair]:
        handler = self.handler(self.path, self.direction, self.limit)
        self.codes = handler.codes
        for _ in parse(self.path, handler, self.limit):
            yield from handler.pairs
            handler.pairs.clear()

    def count(self) -> int:
        """Return the number of start tags of units, which is about that of pairs."""
        return self._start_tags

    @cached_property
    def _start_tags(self) -> int:
        # In the bytes of any encoding that contains ASCII: UTF-16 and UTF-32 have NULs between the letters.
        names = "|".join(r"\0{0,3}".join(name) for name in self.handler.counted or self.handler.units)
        unit = re.compile(rf"<\0{{0,3}}(?:{names})\0{{0,3}}[>\s]".encode())
        count, tail = 0, b""
        for block in read_blocks(self.path):
            data = tail + block
            # A tag that is whole in the tail was counted with the block before.
            count += sum(match.end() > len(tail) for match in unit.finditer(data))
            tail = data[1 - TAG_BYTES :]
        return count
