"""Reading xz and bz2 files to their last byte: Python's own readers silently ignore what follows compressed data."""

import bz2
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol, cast

_BLOCK = 2**16


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
    return cast(IO[bytes], io.BufferedReader(_Decompressed(path, lzma.LZMADecompressor, "xz"), _BLOCK))


def open_bz2(path: Path, mode: str) -> IO[bytes]:
    """Open a bz2 file for reading; see `_Decompressed` for what reading raises."""
    return cast(IO[bytes], io.BufferedReader(_Decompressed(path, bz2.BZ2Decompressor, "bz2"), _BLOCK))


class _Decompressed(io.RawIOBase):
    """A file of one or more compressed streams, with zero padding after them.

    Reading raises EOFError for a truncated stream, and OSError or LZMAError for invalid data.
    """

    def __init__(self, path: Path, new: Callable[[], _Decompressor], kind: str) -> None:
        self._file = path.open("rb")
        self._new, self._kind = new, kind
        self._stream = new()
        self._first = True

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as io.RawIOBase does."""
        view = memoryview(buffer).cast("B")
        text = self._read(len(view))
        view[: len(text)] = text
        return len(text)

    def _read(self, size: int) -> bytes:
        text = b""
        while not text:
            if self._stream.eof:
                following = self._after_the_stream()
                if not following:
                    return b""
                self._stream, self._first = self._new(), False
                text = self._decompressed(following, size)
            else:
                block = self._file.read(_BLOCK) if self._stream.needs_input else b""
                if not block and self._stream.needs_input:
                    raise EOFError("compressed data ends before the end of its stream")
                text = self._decompressed(block, size)
        return text

    def _after_the_stream(self) -> bytes:
        """Return the beginning of the next stream, without zero padding; nothing at the end of the file."""
        following = self._stream.unused_data.lstrip(b"\0")
        while not following and (block := self._file.read(_BLOCK)):
            following = block.lstrip(b"\0")
        return following

    def _decompressed(self, block: bytes, size: int) -> bytes:
        try:
            return self._stream.decompress(block, size)
        except (OSError, lzma.LZMAError):
            if self._first:
                raise
            raise OSError(f"after the {self._kind} data something follows that is no {self._kind}") from None
