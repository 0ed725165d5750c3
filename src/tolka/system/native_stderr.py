"""What C++ libraries write to standard error: moved into a file, while Python's messages stay where they were."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def movable_native_lines() -> Iterator[Callable[[Path], None]]:
    """Yield a function that appends the lines of libraries, such as gloo, to a file until the block ends."""
    before, terminal = sys.stderr, os.dup(2)

    def move_to(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        sys.stderr = os.fdopen(os.dup(terminal), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)

    try:
        yield move_to
    finally:
        sys.stderr = before
        os.dup2(terminal, 2)
        os.close(terminal)
