"""The file of dropped pairs, for people to read: one line of reason, source and target for each."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tolka.text.cleaning.cleaner import Reject
from tolka.text.pairs import Pair

REJECTED = "rejected.tsv"
"""Name of the file, in the folder of a token store."""
_CELL_BREAK = re.compile(r"[\t\n\r]")


@contextmanager
def rejects_file(path: Path) -> Iterator[Reject]:
    """Open a file of dropped pairs; what is yielded writes one pair and the reason."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:

        def write(pair: Pair, reason: str) -> None:
            stream.write("\t".join(_CELL_BREAK.sub(" ", text) for text in (reason, pair.source, pair.target)) + "\n")

        yield write
