"""A byte stream over the blocks that a generator yields."""

import io
from collections.abc import Callable, Iterator
from typing import Any


class BlockStream(io.RawIOBase):
    """A stream of the bytes in blocks, which may be empty. close: is called when the stream is closed."""

    def __init__(self, blocks: Iterator[bytes], close: Callable[[], object]) -> None:
        self._blocks, self._close, self._left = blocks, close, b""

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as io.RawIOBase does."""
        # To return 0 for an empty block would mean the end of the file.
        while not self._left and (block := next(self._blocks, None)) is not None:
            self._left = block
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
