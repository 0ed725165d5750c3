"""Translation memories (TMX 1.4), parsed as a stream.

The parser is expat, restricted so that a file can neither read others nor exhaust the memory: an entity declaration is
an error, and a document type is never fetched. Undeclared entities have HTML's meaning (&eacute;); a segment with an
entity that HTML does not have is flawed.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from html.entities import html5
from typing import NamedTuple
from xml.parsers import expat

from tolka.errors import ConfigError, DataError
from tolka.text.lines import BROKEN, LineLimit, open_bytes
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, register_reader
from tolka.text.readers.xml_encoding import XmlDecoder

_BLOCK = 2**16
_INLINE_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # they contain markup of the original document
_UNIT = re.compile(rb"<\0{0,3}t\0{0,3}u\0{0,3}[>\s]")  # the start tag of a unit, in any encoding that contains ASCII
_UNIT_BYTES = 16  # of the start tag, in UTF-32


@register_reader(".tmx")
class TmxFile(BothSides):
    """Pairs of each unit's first variant in either language; en matches en-US, and pt-BR matches pt-br but not pt-PT.

    Inline codes are left out, highlighted text is kept. A unit that lacks a language is a flawed pair.
    """

    def read(self) -> Iterator[Pair]:
        if self.columns:
            raise ConfigError(f"{self.path} has no columns: leave out corpus.columns")
        units = _Units(self.languages, self.limit)
        try:
            with open_bytes(self.path) as stream:
                block = stream.read(_BLOCK)
                decode = XmlDecoder(str(self.path), block)
                units = _Units(self.languages, self.limit, decode.encoding)
                while block:
                    units.feed(decode(block), last=False)
                    yield from units.pop_pairs()
                    block = stream.read(_BLOCK)
            units.feed(decode(b"", last=True), last=True)
            yield from units.pop_pairs()
        except expat.ExpatError as error:
            raise DataError(f"{self.path}:{error.lineno}: no XML ({expat.ErrorString(error.code)})") from None
        except _RefusedError as error:
            raise DataError(f"{self.path}:{units.line}: {error}") from None
        except BROKEN as error:
            raise DataError(
                f"{self.path}:{units.line}: cannot be read further ({error}); is the file complete?"
            ) from None
        if not units.found_root:
            raise DataError(f"{self.path}: no <tmx> is in it; this is another kind of XML")

    def count(self) -> int:
        """Return the number of units, from their start tags."""
        return self._start_tags

    @cached_property
    def _start_tags(self) -> int:
        count, tail = 0, b""
        try:
            with open_bytes(self.path) as stream:
                while block := stream.read(_BLOCK):
                    data = tail + block
                    count += sum(unit.end() > len(tail) for unit in _UNIT.finditer(data))
                    tail = data[1 - _UNIT_BYTES :]
        except BROKEN as error:
            raise DataError(f"{self.path}: cannot be read to its end ({error}); is the file complete?") from None
        return count


class _RefusedError(Exception):
    """XML that is refused because no translation memory needs it."""


class _Segment(NamedTuple):
    """The text of a unit in one language. flaw: what is wrong with it, or ""."""

    text: str
    flaw: str


class _Units:
    """The units that expat has parsed so far."""

    def __init__(self, languages: tuple[str, str], limit: LineLimit, encoding: str | None = None) -> None:
        """languages: codes of source and target. encoding: of the file, where expat must be told; see XmlDecoder."""
        self._languages = [language.lower().replace("_", "-") for language in languages]
        self._parser = expat.ParserCreate(encoding)
        self._parser.buffer_text = True
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse
        self._parser.UseForeignDTD(True)  # an undeclared entity is skipped, not an error: the DTD might declare it
        self._parser.SkippedEntityHandler = self._undeclared
        self._pairs: list[Pair] = []
        self._variants: dict[str, _Segment] = {}
        self._language = ""
        self._text: list[str] | None = None  # of the current segment; None outside of segments
        self._flaw = ""
        self._limit = limit
        self._characters_left = 0  # until the segment is too long
        self._bytes_fed = 0
        self._code_depth = 0  # of nested inline codes
        self.found_root = False

    @property
    def line(self) -> int:
        """The parser's line number."""
        return self._parser.CurrentLineNumber

    def feed(self, block: bytes, last: bool) -> None:
        """Parse the next block."""
        self._parser.Parse(block, last)
        self._bytes_fed += len(block)
        # The parser buffers a tag or a comment until its end.
        if self._bytes_fed - self._parser.CurrentByteIndex > self._limit.max_bytes + _BLOCK:
            raise _RefusedError(self._limit.complaint("a tag or a comment"))

    def pop_pairs(self) -> list[Pair]:
        """Return the pairs of the units parsed since the last call."""
        pairs, self._pairs = self._pairs, []
        return pairs

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tmx":
            self.found_root = True
        elif name == "tu":
            self._variants = {}
        elif name == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower().replace("_", "-")
        elif name == "seg":
            self._text, self._code_depth, self._flaw = [], 0, ""
            self._characters_left = self._limit.max_bytes
        elif name in _INLINE_CODES:
            self._code_depth += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self._text is not None:
            text = " ".join("".join(self._text).split())
            self._variants.setdefault(self._language, _Segment(text, self._flaw))
            self._text = None
        elif name in _INLINE_CODES:
            self._code_depth -= 1
        elif name == "tu":
            self._pairs.append(self._pair())

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._code_depth:
            self._text.append(text)
            self._characters_left -= len(text)
            if self._characters_left < 0:
                raise _RefusedError(self._limit.complaint("a segment"))

    def _undeclared(self, name: str, is_parameter: bool) -> None:
        """Replace an entity that the file does not declare by HTML's; without one, the segment is flawed."""
        if self._text is not None and not self._code_depth and not is_parameter:
            meaning = html5.get(f"{name};")
            self._characters(meaning or f"&{name};")
            self._flaw = self._flaw if meaning else "undeclared entity"

    def _pair(self) -> Pair:
        segments = [self._variant(language) for language in self._languages]
        missing = [language for language, segment in zip(self._languages, segments, strict=True) if segment is None]
        source, target = (segment or _Segment("", "") for segment in segments)
        present = ", ".join(sorted(self._variants)[:4])
        flaw = f"no variant in {' or '.join(missing)}, but in {present}" if missing else source.flaw or target.flaw
        return Pair(source.text, target.text, flaw)

    def _variant(self, language: str) -> _Segment | None:
        """Return the segment in this language: with exactly this code, or with a more specific one."""
        if language in self._variants:
            return self._variants[language]
        return next((segment for code, segment in self._variants.items() if code.startswith(f"{language}-")), None)

    def _refuse(self, name: str, *_: object) -> None:
        raise _RefusedError(f"it declares an entity ('{name}'), which a translation memory needs for nothing good")
