"""The file of dropped pairs, for people to read: one line of reason, source and target for each."""

import re
from pathlib import Path
from types import TracebackType

from tolka.text.pairs import Pair

REJECTED = "rejected.tsv"
"""Name of the file, in the folder of a token store."""
_CELL_BREAK = re.compile(r"[\t\n\r]")


class RejectsFile:
    """A file of dropped pairs; each call appends one."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="\n")

    def __call__(self, pair: Pair, reason: str) -> None:
        """Write one pair; characters that would break a line or a column become spaces."""
        self._stream.write("\t".join(_CELL_BREAK.sub(" ", text) for text in (reason, pair.source, pair.target)) + "\n")

    def __enter__(self) -> "RejectsFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
