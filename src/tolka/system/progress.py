"""Progress bars and messages on stderr."""

import sys
from contextlib import suppress
from typing import Any

from tqdm import tqdm


def shows_bars() -> bool:
    """Return whether stderr is a terminal; a log file gets lines instead of bars."""
    return sys.stderr.isatty()


def bar(title: str, total: int | None, unit: str, initial: int = 0, *, shown: bool = True) -> "tqdm[Any]":
    """Return a progress bar, erased when done, and hidden when stderr is not a terminal.

    shown: False where a terminal has other things to show in that line.
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


def say(message: str = "") -> None:
    """Print a line on stderr without tearing a bar; stdout is for data.

    Ignored if nobody can read it: on a closed terminal, or a full disk.
    """
    with suppress(OSError):
        tqdm.write(message, file=sys.stderr)
