"""Reading xz and bz2 files to their last byte: Python's own readers silently ignore what follows compressed data."""

import bz2
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 2**16


def open_xz(path: Path, mode: str) -> io.BufferedReader:
    """Open an xz or lzma file for reading, which raises EOFError if it is truncated, LZMAError if it is damaged."""
    return io.BufferedReader(_Decompressed(path, lzma.LZMADecompressor), _BLOCK_BYTES)


def open_bz2(path: Path, mode: str) -> io.BufferedReader:
    """Open a bz2 file for reading, which raises EOFError if it is truncated, OSError if it is damaged."""
    return io.BufferedReader(_Decompressed(path, bz2.BZ2Decompressor), _BLOCK_BYTES)


class _Decompressed(io.RawIOBase):
    """A file of one or more compressed streams, with zero padding after them."""

    def __init__(self, path: Path, new_decompressor: Callable[[], Any]) -> None:
        self._file = path.open("rb")
        self._new_decompressor, self._stream = new_decompressor, new_decompressor()

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as io.RawIOBase does."""
        view, data = memoryview(buffer).cast("B"), b""
        while not data:
            if self._stream.eof:
                block = self._stream.unused_data.lstrip(b"\0")
                while not block and (following := self._file.read(_BLOCK_BYTES)):
                    block = following.lstrip(b"\0")
                if not block:
                    return 0
                self._stream = self._new_decompressor()
            else:
                block = self._file.read(_BLOCK_BYTES) if self._stream.needs_input else b""
                if not block and self._stream.needs_input:
                    raise EOFError("compressed data ends before the end of its stream")
            data = self._stream.decompress(block, len(view))
        view[: len(data)] = data
        return len(data)
