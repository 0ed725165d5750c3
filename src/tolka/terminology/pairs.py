"""A glossary's entries as training pairs."""

from collections.abc import Iterator
from pathlib import Path

from tolka.terminology.glossary import read_glossary
from tolka.text.direction import Direction
from tolka.text.lines import digest_of
from tolka.text.pairs import Pair, PairSource


class GlossaryPairs(PairSource):
    """Each form of a term in the source language, with the first one in the target language."""

    def __init__(self, path: Path, direction: Direction) -> None:
        self._path, self.direction, self.name = path, direction, f"glossary {path.name}"

    def read(self) -> Iterator[Pair]:
        for entry in read_glossary(self._path, self.direction):
            for source in entry.sources:
                yield Pair(source, entry.targets[0])

    def fingerprint(self) -> str:
        return f"glossary {digest_of(self._path)}"

    def count(self) -> int:
        return sum(len(entry.sources) for entry in read_glossary(self._path, self.direction))
