"""Windows of lines that are translated together: full windows of a file, or the lines that a stream has so far."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Thread
from typing import IO, TypeVar

from tolka.errors import TolkaError

# A program's single write arrives within this time: its lines become one window, not a window of one and a rest.
_GATHER_SECONDS = 0.01
_WAIT_SECONDS = 1.0  # on Windows, Ctrl-C takes effect only between waits
T = TypeVar("T")


def full_windows(lines: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` lines, the last one shorter; a reading error comes after the lines before it."""
    window: list[T] = []
    try:
        for line in lines:
            window.append(line)
            if len(window) == size:
                yield window
                window = []
    except TolkaError:
        if window:
            yield window
        raise
    if window:
        yield window


def is_still_written(stream: IO[str]) -> bool:
    """Return whether reading may block: true for a pipe, a socket or a terminal, false for a file."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # no descriptor: text in memory
        return False


def arriving_windows(lines: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the lines of a stream that is still being written, up to `size`, as soon as there are any.

    A thread reads them, at most `size` ahead; a reading error comes after the lines before it.
    """
    arrived: Queue[list[T]] = Queue(size)  # of one line each, and an empty list at the end
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for line in lines:
                arrived.put([line])
        except BaseException as error:  # raised below, in the thread of the caller
            errors.append(error)
        arrived.put([])

    # A daemon thread does not keep the process alive while it waits for a line.
    Thread(target=read, daemon=True).start()
    is_open = True
    while is_open:
        try:
            item = arrived.get(timeout=_WAIT_SECONDS)
        except Empty:
            continue
        time.sleep(_GATHER_SECONDS)
        window = [*item]
        while item and len(window) < size and not arrived.empty():
            window.extend(item := arrived.get())
        if window:
            yield window
        is_open = bool(item)
    if errors:
        raise errors[0]
