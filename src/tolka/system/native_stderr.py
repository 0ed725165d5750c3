"""What C++ libraries write to standard error: moved into a file, while Python's messages stay where they were."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def movable_native_lines() -> Iterator[Callable[[Path], None]]:
    """Yield a function that appends the lines of libraries, such as gloo, to a file until the block ends."""
    with ExitStack() as undo:

        def move_to(path: Path) -> None:
            before, terminal = sys.stderr, os.dup(2)
            undo.callback(os.close, terminal)
            undo.callback(os.dup2, terminal, 2)
            undo.callback(setattr, sys, "stderr", before)
            path.parent.mkdir(parents=True, exist_ok=True)
            sys.stderr = os.fdopen(os.dup(terminal), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
            with path.open("ab") as log:
                os.dup2(log.fileno(), 2)

        yield move_to
