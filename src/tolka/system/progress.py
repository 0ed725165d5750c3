"""Progress bars and messages on stderr."""

import sys
from contextlib import suppress
from typing import Any

from tqdm import tqdm

from tolka.system.launch import is_muted


def shows_bars() -> bool:
    """Return whether stderr is a terminal; a log file gets lines instead of bars."""
    return sys.stderr.isatty() and not is_muted()


def bar(title: str, total: int | None, unit: str, initial: int = 0, *, shown: bool = True) -> "tqdm[Any]":
    """Return a progress bar, erased when done, and hidden when stderr is not a terminal.

    shown: False if the terminal shows something else in that line.
    """
    return tqdm(
        total=total,
        desc=title,
        unit=unit,
        initial=initial,
        unit_scale=True,
        dynamic_ncols=True,
        leave=False,
        file=sys.stderr,
        disable=not (shown and shows_bars()),
        mininterval=0.2,
    )


def text_lines(count: int) -> "list[tqdm[Any]]":
    """Return empty lines of text below the progress bar, erased when closed; none when stderr is not a terminal."""
    if not shows_bars():
        return []
    return [
        tqdm(total=0, bar_format="{desc}", position=place, leave=False, dynamic_ncols=True, file=sys.stderr)
        for place in range(1, count + 1)
    ]


def say(message: str = "") -> None:
    """Print a line on stderr, above a progress bar if there is one; stdout is for data.

    An error is ignored: the terminal may be closed, or the disk of a log full.
    """
    if is_muted():
        return
    with suppress(OSError):
        tqdm.write(message, file=sys.stderr)
