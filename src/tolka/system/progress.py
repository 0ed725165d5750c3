"""Progress bars and messages on stderr, and what other libraries log there."""

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tolka.system.launch import is_muted
from tolka.system.surrogates import printable

Say = Callable[[str], object]
"""Takes the notes of library code, a line each; library code prints nothing by itself, and `say` prints them."""


def silent(message: str) -> None:
    """Discard the message: the `Say` of a caller that wants no notes."""


def shows_bars() -> bool:
    """Return whether stderr is a terminal; a log file gets lines instead of bars."""
    return sys.stderr.isatty() and not is_muted()


def bar(
    title: str, total: int | None, unit: str, initial: int = 0, *, shown: bool = True, time_left: bool = True
) -> "tqdm[Any]":
    """Return a progress bar, erased when done, and hidden when stderr is not a terminal.

    shown: False if the terminal shows something else in that line. time_left: False if something else estimates it.
    """
    times = "{elapsed}<{remaining}" if time_left else "{elapsed}"
    return tqdm(
        total=total,
        desc=printable(title),
        unit=unit,
        bar_format=f"{{l_bar}}{{bar}}| {{n:.0f}}/{{total}} [{times}, {{rate_fmt}}{{postfix}}]"
        if total is not None
        else f"{{desc}}: {{n:.0f}}{unit} [{{elapsed}}, {{rate_fmt}}]",
        initial=initial,
        unit_scale=True,
        # Ctrl-C writes ^C behind the bar: where that makes the terminal wrap the line, it scrolls the bars.
        ncols=shutil.get_terminal_size().columns - len("^C "),
        leave=False,
        file=sys.stderr,
        disable=not (shown and shows_bars()),
        mininterval=0.2,
    )


def say(message: str = "") -> None:
    """Print lines on stderr, above a progress bar if there is one; stdout is for data."""
    if is_muted():
        return
    with suppress(OSError):  # the terminal may be closed, or the disk of a log full
        tqdm.write(printable(message, kept="\n\t"), file=sys.stderr)


@contextmanager
def loggers_at(level: int, *names: str) -> Iterator[None]:
    """Have these loggers pass on only what is at least of this level, until the block ends."""
    before = [(log, log.level) for log in map(logging.getLogger, names)]
    for log, _ in before:
        log.setLevel(level)
    try:
        yield
    finally:
        for log, own in before:
            log.setLevel(own)


@contextmanager
def movable_native_lines() -> Iterator[Callable[[Path], None]]:
    """Yield a function that appends the lines of libraries, such as gloo, to a file until the block ends."""
    with ExitStack() as undo:

        def move_to(path: Path) -> None:
            # C++ libraries write to file descriptor 2, whatever sys.stderr is: so that goes to the file, and
            # sys.stderr to a copy of the terminal.
            before, terminal = sys.stderr, os.dup(2)
            undo.callback(os.close, terminal)
            undo.callback(os.dup2, terminal, 2)
            undo.callback(setattr, sys, "stderr", before)
            path.parent.mkdir(parents=True, exist_ok=True)
            sys.stderr = os.fdopen(os.dup(terminal), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
            with path.open("ab") as log:
                os.dup2(log.fileno(), 2)

        yield move_to
