"""XML files of translations, parsed as a stream: the contract of their readers, and the text of one segment.

The parser is expat, restricted so that a file can neither read others nor exhaust the memory: an entity declaration is
an error, and a document type is never fetched. Undeclared entities have HTML's meaning (&eacute;); a segment with an
entity that HTML does not have is flawed.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from html.entities import html5
from pathlib import Path
from xml.parsers import expat

from tolka.errors import DataError
from tolka.text.encodings import likely_encoding
from tolka.text.lines import BROKEN, LineLimit, open_bytes
from tolka.text.pairs import NO_PAIR, Pair
from tolka.text.readers.base import BothSides
from tolka.text.readers.xml_encoding import XmlDecoder
from tolka.text.scripts import is_variety

BLOCK = 2**16
"""Bytes that are parsed at once."""
_MAX_DEPTH = 100  # elements that are open at once
_TAG_BYTES = 128  # more than the tags of a unit that recovery looks for, without attributes


class RefusedError(Exception):
    """XML that is refused because no file of translations needs it."""


class _NotClosedError(Exception):
    """A unit begins in another, at this byte."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class XmlHandler(ABC):
    """What a reader does with the elements of a file.

    roots: names of its first element. units: of the elements that are left out alone where they are no XML; if none,
    that is an error of the file. parts: of elements of a unit of which the same is true, unless they are not closed.
    """

    roots: frozenset[str]
    units: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()
    kind = "a translation memory"
    text: "SegmentText | None" = None  # of the current segment; None outside of segments

    @abstractmethod
    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle a start tag. name: without its prefix."""

    @abstractmethod
    def end(self, name: str) -> None:
        """Handle an end tag."""

    def give_up(self, line: int, reason: str) -> None:
        """Leave out the current part, or else the current unit, which is no XML in this line."""
        raise NotImplementedError


class UnitHandler(XmlHandler):
    """Collects the pairs of a file of units. counted: names of the elements that stand for a pair, if not of units."""

    counted: frozenset[str] = frozenset()

    def __init__(self, path: Path, languages: tuple[str, str], limit: LineLimit) -> None:
        """languages: codes of source and target."""
        self.languages, self.limit = languages, limit
        self._are_varieties = is_variety(*map(normal_code, languages))  # as en-GB and en-US are
        self.pairs: list[Pair] = []
        self._path = path
        self._first_lines: dict[str, int] = {}  # what is no XML -> the first line with it
        self._first_of_others = ""  # languages of the first unit that is not in both

    def has_language(self, code: str, language: str) -> bool:
        """Return whether a text with this code is one in the source's or the target's language."""
        code, language = normal_code(code), normal_code(language)
        return code == language or (not self._are_varieties and is_variety(code, language))

    def pop_pairs(self) -> list[Pair]:
        """Return the pairs of the units parsed since the last call."""
        pairs, self.pairs = self.pairs, []
        return pairs

    def give_up(self, line: int, reason: str) -> None:
        """Add a flawed pair in place of a unit that is no XML."""
        self.pairs.append(self.no_xml(line, reason))

    def no_xml(self, line: int, reason: str) -> Pair:
        """Return a flawed pair that has the place of what is no XML as its source."""
        first = self._first_lines.setdefault(reason, line)
        return Pair(f"{self._path}:{line}", "", f"no XML ({reason}; first in line {first})")

    def no_pair(self, languages: str) -> str:
        """Return the flaw of a unit that is not in both languages. languages: its own, in words."""
        self._first_of_others = self._first_of_others or languages
        return f"{NO_PAIR}{' and '.join(self.languages)} (the first such unit is {self._first_of_others})"


def normal_code(code: str) -> str:
    """Return a language code as all are compared: en-gb for en_GB."""
    return code.replace("_", "-").lower()


class XmlFile(BothSides):
    """A file of translation units; one that is no XML is a flawed pair."""

    has_columns = False
    version = "2"
    handler: type[UnitHandler]

    def read(self) -> Iterator[Pair]:
        self.refuse_columns()
        handler = self.handler(self.path, self.languages, self.limit)
        for _ in parse(self.path, handler, self.limit):
            yield from handler.pop_pairs()

    def count(self) -> int:
        """Return about the number of pairs, from start tags."""
        return self._start_tags

    @cached_property
    def _start_tags(self) -> int:
        # In any encoding that contains ASCII.
        names = "|".join(r"\0{0,3}".join(name) for name in self.handler.counted or self.handler.units)
        unit = re.compile(rf"<\0{{0,3}}(?:{names})\0{{0,3}}[>\s]".encode())
        count, tail = 0, b""
        try:
            with open_bytes(self.path) as stream:
                while block := stream.read(BLOCK):
                    data = tail + block
                    count += sum(match.end() > len(tail) for match in unit.finditer(data))
                    tail = data[1 - _TAG_BYTES :]
        except BROKEN as error:
            raise DataError(f"{self.path}: cannot be read to its end ({error}); is the file complete?") from None
        return count


class SegmentText:
    """The text of a segment, without its inline codes. flaw: what is wrong with it, or "".

    A code that stands for a break, a tab or an image becomes a blank, and so does any other that is no formatting where
    it stands between two letters.
    """

    _JOINT = "\0"  # where a code was that is neither a break nor formatting; XML cannot have this character

    def __init__(self, limit: LineLimit, name: str = "a segment") -> None:
        self.flaw = ""
        self._parts: list[str] = []
        self._codes: list[tuple[str, str, list[str]]] = []  # nested codes: element, type and content of each
        self._name, self._limit, self._characters_left = name, limit, limit.max_bytes

    def add(self, text: str) -> None:
        """Add what expat has parsed."""
        (self._codes[-1][2] if self._codes else self._parts).append(text)
        self._characters_left -= len(text)
        if self._characters_left < 0:
            raise RefusedError(self._limit.complaint(self._name))

    def open_code(self, element: str, kind: str) -> None:
        """Begin an inline code, whose content is left out. kind: its type."""
        self._codes.append((element, kind.lower(), []))

    def close_code(self) -> None:
        """End the inline code that was begun last."""
        element, kind, content = self._codes.pop()
        if self._codes:
            return
        code = "".join(content)
        if kind in _BREAK_TYPES or _BREAK.match(code):
            self._parts.append(" ")
        elif element in _LONE_CODES and kind not in _FORMATTING_TYPES and not _FORMATTING.match(code):
            self._parts.append(self._JOINT)

    def add_entity(self, name: str) -> None:
        """Add an undeclared entity: HTML's, or else the segment is flawed."""
        meaning = html5.get(f"{name};")
        self.add(meaning or f"&{name};")
        if not self._codes and not meaning:
            self.flaw = "undeclared entity"

    def finished(self) -> str:
        """Return the text with single blanks."""
        text = "".join(self._parts)
        if self._JOINT in text:
            text = _BETWEEN_LETTERS.sub(" ", text).replace(self._JOINT, "")
        return single_spaced(text)


def single_spaced(text: str) -> str:
    """Return the text with a single blank for what XML takes for one; a no-break space is a character as any other."""
    return " ".join(re.findall(r"[^ \t\r\n]+", text))


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
_BETWEEN_LETTERS = re.compile(r"(?<=\w)\0+(?=\w)")


def parse(path: Path, handler: XmlHandler, limit: LineLimit) -> Iterator[None]:
    """Parse a file; yield after each block. DataError with the line for what is no XML, or of another kind."""
    stream = _Stream(handler, limit)
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
        raise DataError(f"{path}:{stream.line}: no XML ({stream.reason(error)})") from None
    except RefusedError as error:
        raise DataError(f"{path}:{stream.line}: {error}") from None
    except BROKEN as error:
        raise DataError(f"{path}:{stream.line}: cannot be read further ({error}); is the file complete?") from None
    if not stream.found_root:
        names = " or ".join(f"<{name}>" for name in sorted(handler.roots))
        raise DataError(f"{path}: no {names} is in it; this is another kind of XML")


class _Stream:
    """A parser that goes on after a unit, or a part of one, that is no XML."""

    def __init__(self, handler: XmlHandler, limit: LineLimit) -> None:
        self.found_root = False
        self.decode: XmlDecoder | None = None
        self._handler, self._limit = handler, limit
        self._open: list[str] = []  # names of the open elements
        self._unit_depth: int | None = None  # of the current unit's element
        self._part_depth: int | None = None  # of that of its current part
        self._error: Exception | None = None  # while the end of a unit that is no XML is looked for
        self._error_facts = 0, ""  # its line and reason
        self._skipped = b""  # the end of what was skipped since
        units, parts = "|".join(handler.units), "|".join(handler.parts)
        self._unit_edge = re.compile(rf"</(?:\w+:)?(?:{units})\s*>|<(?=(?:\w+:)?(?:{units})[\s>])".encode())
        self._part_edge = re.compile(rf"</(?:\w+:)?(?:{parts})\s*>|<(?=/?(?:\w+:)?(?:{parts}|{units})[\s>])".encode())
        self._new_parser(first_line=1)

    def _new_parser(self, first_line: int) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.UseForeignDTD(True)  # an undeclared entity is skipped, not an error: the DTD might declare it
        self._parser, self._block, self._fed_before, self._lines_before = parser, b"", 0, first_line - 1
        for name in self._open:  # what a unit stands in; there are no handlers yet
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
        return self.decode.flaw or _not_utf8(self._block, self._parser.ErrorByteIndex - self._fed_before) or words

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
                self._error, self._error_facts = error, (self.line, self.reason(error))
                place = error.place if isinstance(error, _NotClosedError) else self._parser.ErrorByteIndex
                start = max(place - self._fed_before, 0)
                block = block[start - 2 * (block[max(start - 2, 0) : start] == b"</") :]  # an end tag that fits none

    def close(self) -> None:
        """Parse the end of the file; ExpatError where something is missing."""
        if self._error is not None:
            raise self._error
        self._parser.Parse(b"", True)

    def _parse(self, block: bytes) -> None:
        self._block, self._fed_before = block, self._fed_before + len(self._block)
        self._parser.Parse(block, False)
        # The parser buffers a tag or a comment until its end.
        if self._fed_before + len(block) - self._parser.CurrentByteIndex > self._limit.max_bytes + BLOCK:
            raise RefusedError(self._limit.complaint("a tag or a comment"))

    def _after_unit(self, block: bytes) -> bytes:
        """Return what follows what is no XML, for a parser of its own; b"" where its end is not in sight."""
        data, line = self._skipped + block, self.line
        edge = (self._unit_edge if self._part_depth is None else self._part_edge).search(data)
        if edge is None:
            self._skipped = data[-_TAG_BYTES:]
            self._lines_before += data[:-_TAG_BYTES].count(b"\n")
            return b""
        if self._part_depth is not None and not edge[0].startswith(b"</"):  # it is not closed: the unit is left out
            self._part_depth, self._skipped, self._handler.text = None, data, None
            return self._after_unit(b"")
        rest = data[edge.end() if edge[0].startswith(b"</") else edge.start() :]
        self._handler.give_up(*self._error_facts)
        assert self._unit_depth is not None
        if self._part_depth is None:
            del self._open[self._unit_depth :]
            self._unit_depth = None
        else:
            del self._open[self._part_depth :]
        self._error, self._skipped, self._part_depth, self._handler.text = None, b"", None, None
        self._new_parser(line + data[: len(data) - len(rest)].count(b"\n"))
        return rest

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2] if ":" in name else name
        if local in self._handler.units:
            if self._unit_depth is not None:
                raise _NotClosedError(self._parser.CurrentByteIndex)
            self._unit_depth = len(self._open)
        elif local in self._handler.parts and self._unit_depth is not None:
            if self._part_depth is not None:
                raise _NotClosedError(self._parser.CurrentByteIndex)
            self._part_depth = len(self._open)
        if len(self._open) > _MAX_DEPTH:
            raise RefusedError(f"more than {_MAX_DEPTH} elements in each other")
        self.found_root |= local in self._handler.roots
        self._open.append(name)
        self._handler.start(local, attributes)

    def _end(self, name: str) -> None:
        self._open.pop()
        if self._unit_depth == len(self._open):
            self._unit_depth = None
        if self._part_depth == len(self._open):
            self._part_depth = None
        self._handler.end(name.rpartition(":")[2] if ":" in name else name)

    def _characters(self, text: str) -> None:
        if self._handler.text is not None:
            self._handler.text.add(text)

    def _undeclared(self, name: str, is_parameter: bool) -> None:
        if self._handler.text is not None and not is_parameter:
            self._handler.text.add_entity(name)

    def _refuse(self, name: str, *_: object) -> None:
        raise RefusedError(f"it declares an entity ('{name}'), which {self._handler.kind} needs for nothing good")


def _not_utf8(block: bytes, place: int) -> str:
    """Return that the text around a place of a block is not UTF-8, and what it may be instead; "" if it is UTF-8."""
    text, end, _ = block[block.rfind(b">", 0, max(place, 0)) + 1 :].partition(b"<")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        if end or error.reason != "unexpected end of data":  # else the rest of a character may be in the next block
            encoding = likely_encoding(text)
            return f"not UTF-8, perhaps {encoding}: iconv -f {encoding} -t UTF-8 would convert the file"
    return ""
