"""Progress bars on stderr: every stage shows how far it is, how fast, and how long it will take."""

import sys
from typing import Any

from tqdm import tqdm


def bar(title: str, total: int | None, unit: str, initial: int = 0) -> "tqdm[Any]":
    """A bar with rate and time left; erased when done, and absent when stderr is no terminal (logs stay readable)."""
    return tqdm(
        total=total,
        desc=title,
        unit=unit,
        initial=initial,
        unit_scale=True,
        dynamic_ncols=True,
        leave=False,
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
        mininterval=0.2,
    )


def say(message: str = "") -> None:
    """One line of talk on stderr that does not tear a bar that is on the screen; stdout is for data."""
    tqdm.write(message, file=sys.stderr)
