"""Lines of text files, exactly: bytes split at line feeds and nowhere else, strict UTF-8, errors with file and line.

Python's own text mode also splits at a lone carriage return, and `str.splitlines` at U+2028, U+0085 and more: one
such character in one sentence would shift every later pair.
"""

import codecs
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from tolka.errors import DataError
from tolka.text.compressed import open_bz2, open_xz
from tolka.text.file_cache import KnownFiles
from tolka.text.file_types import binary_kind

_BOM = b"\xef\xbb\xbf"
_UTF32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")  # the first begins with one of UTF-16
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", *_UTF32_MARKS)
_AROUND_A_LINE = len(_BOM) + len(b"\r\n")
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""What a file that ends too soon or was changed raises while it is read."""


def _zstandard(path: Path, mode: str) -> IO[bytes]:
    """Open with pyarrow, which `datasets` needs anyway."""
    import pyarrow

    return cast(IO[bytes], io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd")))


_COMPRESSIONS: dict[str, Callable[[Path, str], Any]] = {
    "": Path.open,
    ".gz": gzip.open,
    ".xz": open_xz,
    ".bz2": open_bz2,
    ".zst": _zstandard,
}
COMPRESSIONS = tuple(_COMPRESSIONS)
"""How the name of a file ends that is compressed in a way that is known here; "" for one that is not."""


def user_path(text: str) -> Path:
    """Return a path as people write it: a leading ~ is a home folder, if that exists."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def without_compression(path: Path) -> Path:
    """Return train.tsv for train.tsv.gz."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, plain or compressed (COMPRESSIONS); DataError if it cannot be opened."""
    opener = _COMPRESSIONS.get(path.suffix.lower(), Path.open)
    try:
        return cast(IO[bytes], opener(path, "rb"))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file{_neighbours(path)}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


_SOME_LINES = "lines before it are: mt-train --check counts those that are not, and says how to convert them alone"

Repair = Callable[[int, bytes], str]
"""Given the number of a line that is not UTF-8, and its bytes: the text to go on with."""


@dataclass(frozen=True)
class LineLimit:
    """The maximum number of bytes of a line, without its end: a file may have no line feeds, and memory is finite.

    key: the setting, for messages.
    """

    max_bytes: int = 1_000_000
    key: str = "corpus.max_line_bytes"

    def check(self, text: str, place: str, what: str = "the text") -> None:
        """Raise DataError with `place` when a text has more bytes."""
        if len(text) > self.max_bytes // 4 and len(text.encode("utf-8", "surrogatepass")) > self.max_bytes:
            raise self.error(place, what)

    def error(self, place: str, what: str) -> DataError:
        """Return the error for a longer line."""
        return DataError(f"{place}: {self.complaint(what)}")

    def complaint(self, what: str) -> str:
        """Return its message without the place."""
        size = f"{what} is longer than {self.max_bytes} bytes ({self.key})"
        return f"{size}; is this text, one sentence a line? If so, raise it"


LINE_LIMIT = LineLimit()


def read_lines(path: Path, repair: Repair | None = None, limit: LineLimit = LINE_LIMIT) -> Iterator[str]:
    """Yield every line of a UTF-8 file without its end; a BOM at the start is left out."""
    with open_bytes(path) as stream:
        yield from decode_lines(stream, str(path), repair, limit)


def decode_lines(
    stream: IO[bytes], name: str, repair: Repair | None = None, limit: LineLimit = LINE_LIMIT
) -> Iterator[str]:
    """Yield the lines of a byte stream, split at line feeds; DataError with `name` and line number.

    One trailing carriage return is taken off, so that files from Windows read the same. No more than `limit` is read
    of a line.
    """
    number, head = 0, b""
    foreign = False  # whether a line before was UTF-8, and not ASCII alone
    raw_lines = iter(partial(stream.readline, limit.max_bytes + _AROUND_A_LINE), b"")
    try:
        for number, raw in enumerate(raw_lines, start=1):
            if number == 1:
                head = raw
                if raw.startswith(_WIDE_MARKS):
                    raise _wide(name, raw)
                raw = raw.removeprefix(_BOM)
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            if b"\0" in line:
                raise _binary(name, head) or _nul(name, number)
            if len(line) > limit.max_bytes:
                raise limit.error(f"{name}:{number}", "the line")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                if repair is not None:
                    yield repair(number, line)
                    continue
                raise _binary(name, head) or DataError(
                    f"{name}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1}); "
                    + (_SOME_LINES if foreign else "convert the file first, for example: iconv -f ISO-8859-1 -t UTF-8")
                ) from None
            foreign = foreign or not text.isascii()
            yield text
    except BROKEN as error:
        raise DataError(f"{name}:{number + 1}: cannot be read further ({error}); is the file complete?") from None


_known = KnownFiles()


def remember_files(store: Path) -> None:
    """Keep line counts and digests of large files in `store`, for later calls."""
    global _known
    _known = KnownFiles(store)


def count_and_digest(path: Path, limit: LineLimit = LINE_LIMIT) -> tuple[int, str]:
    """Return the number of lines (an unfinished last one counts) and the SHA-256 of the content, in one pass.

    DataError for UTF-16, for NUL bytes and where no line feed comes for a long time: what such a file has between line
    feeds are no lines. A line that is a little beyond `limit` is found when it is read.
    """
    count, digest = _known.recall("lines", path, partial(_count_and_digest, limit=limit))
    return int(count), str(digest)


def _count_and_digest(path: Path, limit: LineLimit) -> tuple[int, str]:
    count, last, digest = 0, b"\n", hashlib.sha256()
    unfinished = 0  # bytes since the last line feed
    head = b""
    try:
        with open_bytes(path) as stream:
            while block := stream.read(2**20):
                if count == 0 and last == b"\n" and block.startswith(_WIDE_MARKS):
                    raise _wide(str(path), block)
                head = head or block
                if b"\0" in block:
                    line = count + block[: block.index(b"\0")].count(b"\n") + 1
                    raise _binary(str(path), head) or _nul(str(path), line)
                if head is block and (error := _binary(str(path), head)) and not _is_utf8(block):
                    raise error
                end = block.find(b"\n")
                if unfinished + (len(block) if end < 0 else end) > limit.max_bytes + _AROUND_A_LINE:
                    raise limit.error(f"{path}:{count + 1}", "the line")
                unfinished = unfinished + len(block) if end < 0 else len(block) - block.rfind(b"\n") - 1
                digest.update(block)
                count += block.count(b"\n")
                last = block[-1:]
    except BROKEN as error:
        raise DataError(f"{path}: cannot be read to its end ({error}); is the file complete?") from None
    return count + (last != b"\n"), digest.hexdigest()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the content; DataError when it cannot be read to its end."""
    return str(_known.recall("content", path, _digest_of))


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with open_bytes(path) as stream:
            while block := stream.read(2**20):
                digest.update(block)
    except BROKEN as error:
        raise DataError(f"{path}: cannot be read to its end ({error}); is the file complete?") from None
    return digest.hexdigest()


def _wide(name: str, head: bytes) -> DataError:
    encoding = "UTF-32" if head.startswith(_UTF32_MARKS) else "UTF-16"
    return DataError(f"{name}:1: this is {encoding}; convert it first: iconv -f {encoding} -t UTF-8")


def _binary(name: str, head: bytes) -> DataError | None:
    """Return what a file that is not text is, if its first bytes tell."""
    kind, advice = binary_kind(head)
    return DataError(f"{name}: this is {kind}, not plain text; {advice}") if kind else None


def _is_utf8(block: bytes) -> bool:
    """Return whether a block is UTF-8; a character may be cut at its end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block)
    except UnicodeDecodeError:
        return False
    return True


def _nul(name: str, number: int) -> DataError:
    return DataError(f"{name}:{number}: a NUL byte; this is no plain text (a binary file, or UTF-16 or UTF-32?)")


def _neighbours(path: Path) -> str:
    """Return what the folder has instead, as the end of a message."""
    if not path.parent.is_dir():
        return f" (and no folder {path.parent})"
    names = sorted(p.name for p in path.parent.iterdir() if p.is_file())
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f"; its folder holds: {shown}" if names else "; its folder holds no files"
