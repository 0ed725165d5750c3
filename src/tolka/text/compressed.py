"""Reading xz and bz2 files to their last byte: Python's own readers silently ignore what follows compressed data."""

import bz2
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BLOCK_BYTES = 2**16
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {".xz": lzma.LZMADecompressor, ".bz2": bz2.BZ2Decompressor}


def open_to_the_end(path: Path, mode: str = "rb") -> io.BufferedReader:
    """Open an xz or bz2 file; reading raises EOFError if it is truncated, LZMAError or OSError if it is damaged."""
    return io.BufferedReader(_Decompressed(path, _DECOMPRESSORS[path.suffix.lower()]), _BLOCK_BYTES)


class _Decompressed(io.RawIOBase):
    """A file of one or more compressed streams."""

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
        # A block may be all header, and decompress to nothing; to return 0 would mean the end of the file.
        while not data:
            if self._stream.eof:
                # `cat a.xz b.xz` makes a file of two streams, and xz pads a stream with zeros; anything else is damage.
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
