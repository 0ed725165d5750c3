"""XML parsed as a stream by expat, so that a broken unit costs itself alone, and no file can do harm.

A file can neither read others nor exhaust the memory: an entity declaration is an error, and a document type is never
fetched. Undeclared entities have HTML's meaning (&eacute;); a segment with an entity that HTML lacks is flawed.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from tolka.errors import DataError
from tolka.text.encodings import conversion, likely_encoding
from tolka.text.lines import BROKEN, LineLimit, open_bytes
from tolka.text.readers.xml_encoding import XmlDecoder
from tolka.text.readers.xml_segment import RefusedError, SegmentText

BLOCK = 2**16
"""Bytes that are parsed at once."""
TAG_BYTES = 128  # more than the tags of a unit that recovery looks for, without attributes
_MAX_DEPTH = 100  # elements that are open at once
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))  # of UTF-8: no character begins with one


class XmlHandler(ABC):
    """What a reader does with the elements of a file.

    roots: names that its first element may have. units: of elements each of which is left out alone if it is not XML,
    which is an error anywhere else.
    """

    roots: frozenset[str]
    units: frozenset[str] = frozenset()
    kind = "a translation memory"
    text: SegmentText | None = None  # of the current segment; None outside of segments

    @abstractmethod
    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle a start tag. name: without its prefix."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Handle an end tag."""

    def begin(self) -> None:
        """Begin a unit: forget the one before."""
        self.text = None

    def give_up(self, line: int, reason: str) -> None:
        """Leave out the current unit, as it is not XML in this line."""
        raise NotImplementedError


class _NotClosedError(Exception):
    """A unit begins in another, at the byte that is the argument."""


def parse(path: Path, handler: XmlHandler, limit: LineLimit) -> Iterator[None]:
    """Parse a file; yield after each block. DataError with the line for what is not XML, or of another kind."""
    stream = _Stream(str(path), handler, limit)
    try:
        with open_bytes(path) as file:
            block = file.read(BLOCK)
            stream.decode = XmlDecoder(str(path), block)
            while block:
                stream.feed(stream.decode(block))
                yield
                block = file.read(BLOCK)
            stream.feed(stream.decode(b"", last=True))
        stream.close()
        yield
    except expat.ExpatError as error:
        raise DataError(f"{path}:{stream.line}: not XML ({stream.reason(error)})") from None
    except RefusedError as error:
        raise DataError(f"{path}:{stream.line}: {error}") from None
    except BROKEN as error:
        raise DataError(f"{path}:{stream.line}: cannot be read further ({error}); is the file complete?") from None
    if not stream.has_root:
        names = " or ".join(f"<{name}>" for name in sorted(handler.roots))
        raise DataError(f"{path}: no {names} is in it; this is another kind of XML")


class _Stream:
    """A parser that continues after a unit that is not XML.

    After an error it skips to where the unit ends, by its tags alone, and begins again in the elements around the unit.
    """

    def __init__(self, name: str, handler: XmlHandler, limit: LineLimit) -> None:
        """name: of the file, for messages."""
        self.has_root = False
        self.decode: XmlDecoder | None = None
        self._name, self._handler, self._limit = name, handler, limit
        self._open: list[str] = []  # names of the open elements
        self._unit_depth: int | None = None  # of the current unit's element
        self._error: Exception | None = None  # while the end of a broken unit is looked for
        self._error_line, self._error_reason = 0, ""
        self._skipped = b""  # the end of what was skipped since: a tag may be cut there
        # An end tag of a unit or the place before a start tag.
        units = "|".join(handler.units)
        self._unit_edge = re.compile(rf"</(?:\w+:)?(?:{units})\s*>|<(?=(?:\w+:)?(?:{units})[\s>])".encode())
        self._new_parser(first_line=1)

    def _new_parser(self, first_line: int) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        # As a DTD that is not read might declare it, an undeclared entity is skipped and not an error.
        parser.UseForeignDTD(True)
        self._parser, self._block, self._fed_before, self._lines_before = parser, b"", 0, first_line - 1
        # expat cannot continue after an error: a new one first gets the elements that the unit stands in, and only then
        # its handlers.
        for name in self._open:
            self._parse(f"<{name}>".encode())
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse
        parser.SkippedEntityHandler = self._undeclared

    @property
    def line(self) -> int:
        """The number of the line that is being parsed."""
        return self._lines_before + self._parser.CurrentLineNumber

    def reason(self, error: Exception) -> str:
        """Return what is wrong with the XML, in words."""
        if not isinstance(error, expat.ExpatError):
            return "a unit that is not closed"
        words = expat.ErrorString(error.code)
        if words != expat.errors.XML_ERROR_INVALID_TOKEN or self.decode is None:
            return words
        return self.decode.flaw or self._not_utf8(self._parser.ErrorByteIndex - self._fed_before) or words

    def _not_utf8(self, place: int) -> str:
        """Return a note that the text around a place of the block is not UTF-8, and what it may be; "" if it is."""
        place = max(place, 0)
        # The block may begin inside a character, whose first bytes ended the block before.
        before = self._block[:place].lstrip(_CONTINUATION_BYTES).rpartition(b">")[2]
        text, end, _ = (before + self._block[place:]).partition(b"<")
        try:
            text.decode()
        except UnicodeDecodeError as error:
            if end or error.reason != "unexpected end of data":  # else the rest of a character may be in the next block
                encoding = likely_encoding(text)
                return f"not UTF-8, perhaps {encoding}; {conversion(self._name, encoding)} would convert the file"
        return ""

    def feed(self, block: bytes) -> None:
        """Parse the next block. ExpatError outside of units."""
        while block:
            if self._error is not None:
                block = self._after_unit(block)
                continue
            try:
                self._parse(block)
                return
            except (expat.ExpatError, _NotClosedError) as error:
                if self._unit_depth is None:
                    raise
                self._error, self._error_line, self._error_reason = error, self.line, self.reason(error)
                place = error.args[0] if isinstance(error, _NotClosedError) else self._parser.ErrorByteIndex
                start = max(place - self._fed_before, 0)
                # expat points at the name of an end tag that fits none, which may be the unit's own.
                if start >= 2 and block[start - 2 : start] == b"</":
                    start -= 2
                block = block[start:]

    def close(self) -> None:
        """Parse the end of the file; ExpatError where something is missing."""
        if self._error is not None:
            raise self._error
        self._parser.Parse(b"", True)

    def _parse(self, block: bytes) -> None:
        self._block, self._fed_before = block, self._fed_before + len(self._block)
        self._parser.Parse(block, False)
        # expat holds a tag or a comment in memory until its end.
        if self._fed_before + len(block) - self._parser.CurrentByteIndex > self._limit.max_bytes + BLOCK:
            raise RefusedError(self._limit.complaint("a tag or a comment"))

    def _after_unit(self, block: bytes) -> bytes:
        """Return what follows the broken unit, for a new parser; b"" if its end is not in this block."""
        data, line = self._skipped + block, self.line
        edge = self._unit_edge.search(data)
        if edge is None:
            self._skipped = data[-TAG_BYTES:]
            self._lines_before += data[:-TAG_BYTES].count(b"\n")
            return b""
        rest = data[edge.end() if edge[0].startswith(b"</") else edge.start() :]
        self._handler.give_up(self._error_line, self._error_reason)
        del self._open[self._unit_depth :]
        self._error, self._skipped, self._unit_depth, self._handler.text = None, b"", None, None
        self._new_parser(line + data[: len(data) - len(rest)].count(b"\n"))
        return rest

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local in self._handler.units:
            # Units do not nest: the end tag of the one before is missing.
            if self._unit_depth is not None:
                raise _NotClosedError(self._parser.CurrentByteIndex)
            self._unit_depth = len(self._open)
            self._handler.begin()
        if len(self._open) > _MAX_DEPTH:
            raise RefusedError(f"more than {_MAX_DEPTH} elements in each other")
        self.has_root |= local in self._handler.roots
        self._open.append(name)
        self._handler.start(local, attributes)

    def _end(self, name: str) -> None:
        self._open.pop()
        if self._unit_depth == len(self._open):
            self._unit_depth = None
        self._handler.end(name.rpartition(":")[2])

    def _characters(self, text: str) -> None:
        if self._handler.text is not None:
            self._handler.text.add(text)

    def _undeclared(self, name: str, is_parameter: bool) -> None:
        if self._handler.text is not None and not is_parameter:
            self._handler.text.add_entity(name)

    def _refuse(self, name: str, *_: object) -> None:
        raise RefusedError(f"it declares an entity ('{name}'), and {self._handler.kind} needs none")
