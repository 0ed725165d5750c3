"""Progress bars on stderr: every stage shows how far it is, how fast, and how long it will take."""

import sys
from contextlib import suppress
from typing import Any

from tqdm import tqdm


def shows_bars() -> bool:
    """Whether stderr is a terminal, where bars show what goes on; a log file has lines instead."""
    return sys.stderr.isatty()


def bar(title: str, total: int | None, unit: str, initial: int = 0, *, shown: bool = True) -> "tqdm[Any]":
    """A bar with rate and time left; erased when done, and absent when stderr is no terminal (logs stay readable).

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
    """One line of talk on stderr that does not tear a bar that is on the screen; stdout is for data.

    Lost where nobody can read it: on a terminal that was closed, or a full disk.
    """
    with suppress(OSError):
        tqdm.write(message, file=sys.stderr)
