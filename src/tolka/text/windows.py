"""Windows of lines that are translated together: full windows of a file, or the lines that a stream has so far."""

import os
import stat
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO, Generic, TypeVar

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


class ArrivingLines(Generic[T]):
    """Lines of a stream that is still being written, read in a thread."""

    def __init__(self, lines: Iterable[T], size: int) -> None:
        """size: maximum number of lines per window, and of lines read ahead."""
        self._lines, self._size = lines, size
        self._arrived: deque[T] = deque()
        self._ended = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def windows(self) -> Iterator[list[T]]:
        """Yield the lines that have arrived, up to `size`, as soon as there are any; then raise a reading error."""
        # A daemon thread does not keep the process alive while it waits for a line.
        threading.Thread(target=self._read, daemon=True).start()
        while window := self._window():
            yield window
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        try:
            for line in self._lines:
                with self._changed:
                    while len(self._arrived) == self._size:
                        self._changed.wait()
                    self._arrived.append(line)
                    # The two numbers that `_window` waits for; it need not wake for each line.
                    if len(self._arrived) in (1, self._size):
                        self._changed.notify()
        except BaseException as error:  # raised by `windows`, in the thread of the caller
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _window(self) -> list[T]:
        with self._changed:
            while not self._arrived and not self._ended:
                self._changed.wait(_WAIT_SECONDS)
            self._changed.wait_for(lambda: len(self._arrived) == self._size or self._ended, _GATHER_SECONDS)
            window = list(self._arrived)
            self._arrived.clear()
            self._changed.notify()
        return window
