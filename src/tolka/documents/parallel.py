"""Parallel text of two documents, of which one is the translation of the other."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path

from tolka.documents.base import DOCUMENTS, Document
from tolka.documents.text import EDIT, Text
from tolka.errors import DataError
from tolka.system.number_format import count_text
from tolka.text.lines import digest_of, without_compression
from tolka.text.pairs import Pair, PairSource
from tolka.text.readers.base import FORMATS, SIDES


def register_documents() -> None:
    """Let the two files of a parallel text be documents, unless their format has both languages in one file."""
    for kind in map(DOCUMENTS.get, DOCUMENTS.names()):
        if issubclass(kind, Document):
            SIDES.update({ending: DocumentPair for ending in kind.endings if ending not in FORMATS})


class DocumentPair(PairSource):
    """Two documents whose texts are pairs, in order, but for those that are left alone on either side."""

    def __init__(self, source: Path, target: Path, name: str) -> None:
        self.name, self.paths = name, (source, target)

    def read(self) -> Iterator[Pair]:
        yield from self._pairs

    def count(self) -> int:
        return len(self._pairs)

    def fingerprint(self) -> str:
        return hashlib.sha256(f"documents 1 {' '.join(map(digest_of, self.paths))}".encode()).hexdigest()

    @cached_property
    def _pairs(self) -> list[Pair]:
        """The pairs; DataError for documents of which one has more texts, as then nothing says which are pairs."""
        sides = source, target = [_texts(path) for path in self.paths]
        if len(source) != len(target):
            counts = [
                f"{path} has {count_text(len(side), 'text')}" for path, side in zip(self.paths, sides, strict=True)
            ]
            different = (pair for pair in zip(source, target, strict=False) if pair[0].reason != pair[1].reason)
            places = [each.where for each in next(different, ())]
            where = f"; they differ first at {' and '.join(places)}" if places else ""
            raise DataError(
                f"{' but '.join(counts)}, so they are not pairs{where}. Let both have the same paragraphs, or align "
                "their sentences in two files of lines"
            )
        pairs = zip(source, target, strict=True)
        return [Pair(first.source, second.source) for first, second in pairs if not first.reason and not second.reason]


def _texts(path: Path) -> list[Text]:
    ending = without_compression(path).suffix.lower()
    kinds = map(DOCUMENTS.get, DOCUMENTS.names())
    kind = next((kind for kind in kinds if ending in kind.endings and issubclass(kind, Document)), None)
    if kind is None:
        raise DataError(f"{path} is a file of lines, and the other language's is a document: give two documents")
    return [text for text in kind(path).texts() if text.reason != EDIT]
