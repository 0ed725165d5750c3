"""Translation memories (TMX 1.4), as translators exchange them, parsed as a stream.

The parser is expat with nothing that could reach beyond the file or blow it up: an entity declaration is an error, a
document type is skipped and never fetched.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from xml.parsers import expat

from tolka.errors import ConfigError, DataError
from tolka.text.corpus import Pair
from tolka.text.lines import BROKEN, open_bytes
from tolka.text.readers.base import BothSides

_BLOCK = 2**16
_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # what they hold is markup of the original document
_UNIT = re.compile(rb"<tu[> ]|<\0t\0u\0[> ]")  # where one begins, in UTF-8 and in either UTF-16


class TmxFile(BothSides):
    """Each unit's first variant in either language; en is also en-US, and pt-BR is pt-br but not pt-PT.

    Inline codes are left out, what is highlighted stays. A unit that lacks a language is given with that as its flaw.
    """

    def read(self) -> Iterator[Pair]:
        """See PairSource.read."""
        if self.columns:
            raise ConfigError(f"{self.path} has no columns: leave out corpus.columns")
        units = _Units(self.languages)
        place = str(self.path)
        try:
            with open_bytes(self.path) as stream:
                while block := stream.read(_BLOCK):
                    units.feed(block, last=False)
                    yield from units.taken()
            units.feed(b"", last=True)
            yield from units.taken()
        except expat.ExpatError as error:
            raise DataError(f"{place}:{error.lineno}: no XML ({expat.ErrorString(error.code)})") from None
        except _RefusedError as error:
            raise DataError(f"{place}:{units.line}: {error}") from None
        except BROKEN as error:
            raise DataError(f"{place}:{units.line}: cannot be read further ({error}); is the file complete?") from None
        if not units.found_root:
            raise DataError(f"{place}: no <tmx> is in it; this is another kind of XML")

    def count(self) -> int:
        """See PairSource.count: the beginnings of units."""
        return self._beginnings

    @cached_property
    def _beginnings(self) -> int:
        """In UTF-8 or UTF-16."""
        found, before = 0, b""
        try:
            with open_bytes(self.path) as stream:
                while block := stream.read(_BLOCK):
                    text = before + block
                    found += sum(unit.end() > len(before) for unit in _UNIT.finditer(text))
                    before = text[-6:]
        except BROKEN as error:
            raise DataError(f"{self.path}: cannot be read to its end ({error}); is the file complete?") from None
        return found


class _RefusedError(Exception):
    """Something that no translation memory needs."""


class _Units:
    """What expat has found so far."""

    def __init__(self, languages: tuple[str, str]) -> None:
        self._languages = [language.lower().replace("_", "-") for language in languages]
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse
        self._done: list[Pair] = []
        self._variants: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None  # of the segment being read
        self._codes = 0  # how deep in inline codes
        self.found_root = False

    @property
    def line(self) -> int:
        """Where the parser is."""
        return self._parser.CurrentLineNumber

    def feed(self, block: bytes, last: bool) -> None:
        """Go on with the file."""
        self._parser.Parse(block, last)

    def taken(self) -> list[Pair]:
        """The units since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tmx":
            self.found_root = True
        elif name == "tu":
            self._variants = {}
        elif name == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower().replace("_", "-")
        elif name == "seg":
            self._text, self._codes = [], 0
        elif name in _CODES:
            self._codes += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self._text is not None:
            self._variants.setdefault(self._language, " ".join("".join(self._text).split()))
            self._text = None
        elif name in _CODES:
            self._codes -= 1
        elif name == "tu":
            self._done.append(self._pair())

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _pair(self) -> Pair:
        found = [self._variant(language) for language in self._languages]
        missing = [language for language, text in zip(self._languages, found, strict=True) if text is None]
        source, target = (text or "" for text in found)
        there = ", ".join(sorted(self._variants)[:4])
        return Pair(source, target, f"no variant in {' or '.join(missing)}, but in {there}" if missing else "")

    def _variant(self, language: str) -> str | None:
        """The wanted language's text: of exactly this code, or of one that says more than it."""
        if language in self._variants:
            return self._variants[language]
        return next((text for code, text in self._variants.items() if code.startswith(f"{language}-")), None)

    def _refuse(self, name: str, *_: object) -> None:
        raise _RefusedError(f"it declares an entity ('{name}'), which a translation memory needs for nothing good")
