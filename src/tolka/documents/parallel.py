"""Parallel text of two documents, of which one is the translation of the other."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from tolka.documents.base import DOCUMENTS, Document
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.text.lines import digest_of, without_compression
from tolka.text.pairs import Pair, PairSource
from tolka.text.readers.base import FORMATS, SIDES


def register_documents() -> None:
    """Let the two files of a parallel text be documents, unless their format has both languages in one file."""
    SIDES.update(dict.fromkeys(_kinds(), DocumentPair))


def _kinds() -> dict[str, type[Document]]:
    kinds = [kind for kind in map(DOCUMENTS.get, DOCUMENTS.names()) if issubclass(kind, Document)]
    return {ending: kind for kind in kinds for ending in kind.endings if ending not in FORMATS}


class DocumentPair(PairSource):
    """Two documents whose texts are pairs, in order, but for those that are left alone on either side."""

    def __init__(self, source: Path, target: Path, name: str) -> None:
        self.name, self.paths = name, (source, target)

    def read(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def count(self) -> int:
        return len(self._pairs)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"documents 1 {' '.join(map(digest_of, self.paths))}".encode()).hexdigest()

    @cached_property
    def _pairs(self) -> list[Pair]:
        source, target = (_texts(path) for path in self.paths)
        if len(source) != len(target):
            raise DataError(
                f"{self.paths[0]} has {len(source)} texts, {self.paths[1]} {len(target)}: they are not pairs; "
                "let both have the same paragraphs, or align their sentences in two files of lines"
            )
        pairs = zip(source, target, strict=True)
        return [Pair(first.source, second.source) for first, second in pairs if not first.reason and not second.reason]


def _texts(path: Path) -> list[Text]:
    kind = _kinds().get(without_compression(path).suffix.lower())
    if kind is None:
        raise DataError(f"{path} is a file of lines, and that of the other language a document: give two documents")
    return [text for text in kind(path).texts() if text.reason != EDIT]
