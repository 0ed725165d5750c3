"""Units of XML files of translations, each parsed by itself: a broken unit costs itself alone.

A file is cut at the tags of its units and of the elements around them, and only units are parsed. So no file can do
harm: what its document type declares is never read. Undeclared entities have HTML's meaning (&eacute;).
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.entities import html5
from itertools import chain
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from tolka.errors import DataError
from tolka.text.encodings import codec_of, conversion, is_utf8, likely_encoding
from tolka.text.lines import read_blocks

_MOST_BYTES = 2**24  # of a unit; a document of a test set is one
_MAX_DEPTH = 100  # elements of a unit that are open at once
_TAG = re.compile(rb"<[^<>]*>")
_DECLARED = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]{1,100})["']""")
# Declared in ASCII, UTF-16 is wrong: a program, or reading, has converted the file and not its declaration.
_LIKE_UTF8 = re.compile("utf-8(-sig)?|ascii|utf-(16|32)(-[lb]e)?")


@dataclass(frozen=True)
class Unit:
    """An element that a reader makes pairs of.

    line: in which it begins or, if it is not XML, in which that shows. element: None if it is not XML, for this reason.
    around: start tags of the elements around it, the inner ones first.
    """

    line: int
    element: Element | None
    reason: str = ""
    around: Sequence[Element] = ()


def read_units(path: Path, names: Sequence[str], around: Sequence[str]) -> Iterator[Unit]:
    """Yield the units of a file. names: of their elements. around: of elements around them, the root's first.

    DataError with the line for a file of another kind, for one that ends too early, and for a unit of over 16 MiB.
    """
    encoding = declared_encoding(next(read_blocks(path), b""), path)
    # A comment or CDATA, a tag, or the beginning of one of these at the end of what is read.
    tags = re.compile(
        rf"(?s:<!--.*?-->|<!\[CDATA\[.*?\]\]>)|<(?P<end>/?)(?:[\w.-]+:)?(?P<name>{'|'.join([*names, *around])})"
        rf"""(?:\s(?:[^<>"']|"[^"<]*"|'[^'<]*')*+)?/?>|(?P<cut><(?:!--|!\[CDATA\[|[^<]*\Z))""".encode()
    )
    left, line, has_root, outer = b"", 1, False, list[Element]()
    for block in chain(read_blocks(path, codec_of(encoding) or ""), [b""]):
        data, place, cut, begin, begin_line = left + block, 0, len(left + block), -1, 0  # begin: of the open unit
        for tag in tags.finditer(data):
            if tag["cut"]:
                cut = tag.start()
                break
            if not tag["name"]:
                continue
            line, place, name = line + data.count(b"\n", place, tag.start()), tag.start(), tag["name"].decode()
            is_empty = tag[0].endswith(b"/>")
            # Units do not nest, and no element around them is in one: its end tag is missing.
            if begin >= 0 and not (name in names and tag["end"]):
                yield Unit(line, None, "a unit that is not closed")
                begin = -1
            if name in names:
                begin, begin_line = (begin, begin_line) if begin >= 0 else (place, line)
                if tag["end"] or is_empty:
                    yield _unit(path, data[begin : tag.end()], begin_line, encoding, outer)
                    begin = -1
            elif tag["end"]:
                if not outer or outer.pop(0).tag != name:
                    raise DataError(f"{path}:{line}: not XML (</{name}> ends what has not begun)")
            else:
                has_root = True
                found = _unit(path, tag[0] if is_empty else tag[0][:-1] + b"/>", line, encoding)
                if found.element is None:
                    raise DataError(f"{path}:{found.line}: not XML ({found.reason})")
                outer[:0] = [] if is_empty else [found.element]
        if begin >= 0:
            left, line = data[begin:], begin_line
        else:
            left, line = data[cut:], line + data.count(b"\n", place, cut)
        if len(left) > _MOST_BYTES:
            raise DataError(f"{path}:{line}: a unit or a comment is longer than {_MOST_BYTES} bytes")
    if not has_root:
        raise DataError(f"{path}: no <{around[0]}> is in it; this is another kind of XML")
    if outer:
        raise DataError(f"{path}:{line}: not XML (<{outer[0].tag}> has no end); is the file complete?")


def _unit(path: Path, content: bytes, line: int, encoding: str, outer: Sequence[Element] = ()) -> Unit:
    try:
        return Unit(line, _parsed(content), around=[*outer])
    except expat.ExpatError as error:
        line, reason = line + error.lineno - 1, expat.ErrorString(error.code)
    except DataError as error:
        reason = str(error)
    if not is_utf8(content):
        reason = f"a byte that is not {encoding}, which the file says it is in"
        if not encoding:
            found = likely_encoding(_TAG.sub(b"", content))
            reason = f"not UTF-8, perhaps {found}; {conversion(str(path), found)} would convert the file"
    return Unit(line, None, reason)


def _parsed(content: bytes) -> Element:
    """Return an element, with names without prefixes; ExpatError or DataError for what is not XML, or not needed."""
    builder, depth = TreeBuilder(), 0
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    # As a DTD that is not read might declare it, an undeclared entity is skipped and not an error.
    parser.UseForeignDTD(True)

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise DataError(f"more than {_MAX_DEPTH} elements in each other")
        builder.start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition(":")[2])

    def skipped(name: str, is_parameter: bool) -> None:
        if f"{name};" not in html5:
            raise DataError(f"undeclared entity &{name};")
        builder.data(html5[f"{name};"])

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.SkippedEntityHandler = builder.data, skipped
    parser.Parse(content, True)
    return builder.close()


def declared_encoding(raw: bytes, path: Path) -> str:
    """Return the encoding to decode a file from; "" for UTF-8. DataError for one that is not known."""
    if raw[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if raw[:1] == b"<" else "utf-16-be"
    match = _DECLARED.match(raw)
    if not match:
        return ""
    declared = match[1].decode("ascii", "replace").strip()
    codec = codec_of(declared)
    if codec is None:
        raise DataError(
            f"{path}:1: the encoding '{declared}' is not known; allowed are UTF-8, ISO-8859-1, Windows-1252 and all "
            "others of Python's codecs; correct the file's first line, or convert it: iconv -f ... -t UTF-8"
        )
    # A byte order mark overrides the declaration.
    return "" if raw.startswith(codecs.BOM_UTF8) or _LIKE_UTF8.fullmatch(codec) else declared
