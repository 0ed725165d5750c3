"""Reading xz and bz2 files to their last byte: Python's own readers silently ignore what follows compressed data."""

import bz2
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol, cast

_BLOCK_BYTES = 2**16


class _Decompressor(Protocol):
    """The common interface of bz2's and lzma's decompressors of one stream."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def open_xz(path: Path, mode: str) -> IO[bytes]:
    """Open an xz or lzma file for reading; see `_Decompressed` for what reading raises."""
    return cast(IO[bytes], io.BufferedReader(_Decompressed(path, lzma.LZMADecompressor, "xz"), _BLOCK_BYTES))


def open_bz2(path: Path, mode: str) -> IO[bytes]:
    """Open a bz2 file for reading; see `_Decompressed` for what reading raises."""
    return cast(IO[bytes], io.BufferedReader(_Decompressed(path, bz2.BZ2Decompressor, "bz2"), _BLOCK_BYTES))


class _Decompressed(io.RawIOBase):
    """A file of one or more compressed streams, with zero padding after them.

    Reading raises EOFError for a truncated stream, and OSError or LZMAError for invalid data.
    """

    def __init__(self, path: Path, new_decompressor: Callable[[], _Decompressor], kind: str) -> None:
        self._file = path.open("rb")
        self._new_decompressor, self._kind = new_decompressor, kind
        self._stream = new_decompressor()
        self._in_first_stream = True

    def readable(self) -> bool:
        """Return True: the file is open for reading."""
        return True

    def close(self) -> None:
        """Close the compressed file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as io.RawIOBase does."""
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        data = b""
        while not data:
            if self._stream.eof:
                block = self._start_of_next_stream()
                if not block:
                    return b""
                self._stream, self._in_first_stream = self._new_decompressor(), False
            else:
                block = self._file.read(_BLOCK_BYTES) if self._stream.needs_input else b""
                if not block and self._stream.needs_input:
                    raise EOFError("compressed data ends before the end of its stream")
            data = self._decompress(block, size)
        return data

    def _start_of_next_stream(self) -> bytes:
        """Return the first bytes after the zero padding that follows a stream; b"" at the end of the file."""
        start = self._stream.unused_data.lstrip(b"\0")
        while not start and (block := self._file.read(_BLOCK_BYTES)):
            start = block.lstrip(b"\0")
        return start

    def _decompress(self, block: bytes, size: int) -> bytes:
        try:
            return self._stream.decompress(block, size)
        except (OSError, lzma.LZMAError):
            if self._in_first_stream:
                raise
            raise OSError(f"after the {self._kind} data something follows that is no {self._kind}") from None
