"""Test sets of the WMT shared tasks: a file of segments for each side (SGML, until 2020), or one with all (XML)."""

import hashlib
import html
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from xml.etree.ElementTree import Element

from tolka.errors import DataError
from tolka.text.lines import LINE_LIMIT, LineLimit, count_and_digest, read_lines
from tolka.text.pairs import FURTHER, Pair, PairSource
from tolka.text.readers.base import SIDES, register_reader
from tolka.text.readers.xml_file import XmlFile, has_language, single_spaced
from tolka.text.readers.xml_units import Unit

# As SGML allows it: names of tags in any case, attributes with or without quotes.
_TAG = re.compile(r"<(?P<end>/?)(?:doc\b(?P<document>[^<>]*)|seg\b(?P<segment>[^<>]*)>)", re.IGNORECASE)
_ID = re.compile(r"""\b(?:doc)?id\s*=\s*["']?([^"'\s]+)""", re.IGNORECASE)


class SgmFiles(PairSource):
    """Two files whose segments are pairs."""

    def __init__(self, source: Path, target: Path, name: str, limit: LineLimit = LINE_LIMIT) -> None:
        self.name, self.paths, self._limit = name, (source, target), limit

    def read(self) -> Iterator[Pair]:
        sides = (segments(path, self._limit) for path in self.paths)
        for source, target in zip_longest(*sides, fillvalue=("the end", "")):
            if source[0] != target[0]:
                raise DataError(
                    f"{self.paths[0]} has {source[0]} where {self.paths[1]} has {target[0]}: the same segments must "
                    "stand in both, in the same order"
                )
            yield Pair(source[1], target[1])

    def count(self) -> int:
        return sum(1 for _ in segments(self.paths[0], self._limit))

    def fingerprint(self) -> str:
        digests = "".join(count_and_digest(path, self._limit)[1] for path in self.paths)
        return hashlib.sha256(f"sgm{digests}".encode()).hexdigest()


SIDES.update({".sgm": SgmFiles, ".sgml": SgmFiles})


def segments(path: Path, limit: LineLimit) -> Iterator[tuple[str, str]]:
    """Yield the name of each segment, of its document and its number in the file, and its text; DataError for none."""
    document, number, name, parts, size = "", 0, "", list[str](), 0
    for line_number, line in enumerate(read_lines(path, limit=limit), 1):
        place = 0
        # A line may have several segments, and a segment several lines; `name` is that of the open one.
        for tag in [*_TAG.finditer(line), None]:
            if name:
                parts.append(line[place : tag.start() if tag else None])
                size += len(parts[-1])
                if size > limit.max_bytes:
                    raise limit.error(f"{path}:{line_number}", "a segment")
            if tag is None:
                break
            place = tag.end()
            id_of = _ID.search(tag["segment"] or tag["document"] or "")
            if tag["segment"] is None:
                document = id_of[1] if id_of else document
            elif tag["end"]:
                if name:
                    yield name, single_spaced(html.unescape(" ".join(parts)))
                name, parts, size = "", [], 0
            # An end that is missing would make one segment of two, and shift all later ones.
            elif name:
                raise DataError(f"{path}:{line_number}: {name} has no end before the next one")
            else:
                number += 1
                name = f"segment {number} (document '{document}', id '{id_of[1] if id_of else ''}')"
    if name:
        raise DataError(f"{path}: {name} has no end; is the file complete?")
    if not number:
        raise DataError(f"{path}: no <seg> is in it")


@register_reader(".xml")
class WmtFile(XmlFile):
    """Sources and references of a test set of WMT 2021 or later; of several references, the first is read."""

    units, around, counted = ("doc",), ("dataset", "collection"), ("seg",)

    def pairs_of(self, element: Element, unit: Unit) -> Iterator[Pair]:
        sources, references = (
            [
                {segment.get("id", ""): self.text_of(segment, unit) for segment in side.iter("seg")}
                for side in element.iter(kind)
                if has_language(own := side.get("lang") or language, language or own, self.direction)
            ]
            for kind, language in zip(("src", "ref"), self.direction, strict=True)
        )
        for number, source in (sources[0] if sources else {}).items():
            for further, texts in enumerate(references or [{}]):
                yield Pair(source, texts.get(number, ""), f"{FURTHER}references not read" if further else "")
