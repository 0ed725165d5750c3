"""The file of dropped pairs, for people to read: reason, source, target per line."""

import re
from pathlib import Path
from types import TracebackType

from tolka.text.pairs import Pair

REJECTED = "rejected.tsv"
"""The file of a store's folder that has it."""
_NO_CELL = re.compile(r"[\t\n\r]")


class RejectsFile:
    """A file that takes one dropped pair per call."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="\n")

    def __call__(self, pair: Pair, reason: str) -> None:
        """Write one pair; characters that would break a line or a column become spaces."""
        self._stream.write("\t".join(_NO_CELL.sub(" ", text) for text in (reason, pair.source, pair.target)) + "\n")

    def __enter__(self) -> "RejectsFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
