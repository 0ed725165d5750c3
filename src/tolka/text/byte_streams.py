"""Byte streams made of blocks; xz and bz2 files read to their last byte.

Python's own readers of these silently ignore what follows compressed data.
"""

import bz2
import io
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

_BLOCK_BYTES = 2**16
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {".xz": lzma.LZMADecompressor, ".bz2": bz2.BZ2Decompressor}


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


def open_to_the_end(path: Path, mode: str = "rb") -> io.BufferedReader:
    """Open an xz or bz2 file; reading raises EOFError if it is truncated, LZMAError or OSError if it is damaged."""
    file = path.open("rb")
    blocks = _unpacked(file, _DECOMPRESSORS[path.suffix.lower()])
    return io.BufferedReader(BlockStream(blocks, file.close), _BLOCK_BYTES)


def _unpacked(file: BinaryIO, new_decompressor: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of a file of one or more compressed streams."""
    stream = new_decompressor()
    while True:
        block = b""
        if stream.eof:
            # `cat a.xz b.xz` makes a file of two streams, and xz pads a stream with zeros; anything else is damage.
            block = stream.unused_data.lstrip(b"\0")
            while not block and (following := file.read(_BLOCK_BYTES)):
                block = following.lstrip(b"\0")
            if not block:
                return
            stream = new_decompressor()
        elif stream.needs_input:
            block = file.read(_BLOCK_BYTES)
            if not block:
                raise EOFError("compressed data ends before the end of its stream")
        yield stream.decompress(block, _BLOCK_BYTES)
