"""Lines of text files, exactly: bytes split at line feeds and nowhere else, strict UTF-8, errors with file and line.

Python's own text mode also splits at a lone carriage return, and `str.splitlines` at U+2028, U+0085 and more: one
such character in one sentence would shift every later pair.
"""

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from tolka.errors import DataError
from tolka.system.whole_files import check_is_file
from tolka.text.encodings import as_utf8, conversion, is_utf8, likely_encoding, transcoded
from tolka.text.file_types import binary_kind

_SAMPLE_BYTES = 2**14  # by which the encoding of a file that is not UTF-8 is recognised
# Read beside a line's bytes, so that one of exactly the limit is seen whole.
_BOM_AND_LINE_END = len(codecs.BOM_UTF8) + len(b"\r\n")
ADDRESS = re.compile(r"(?:https?|ftp|s3|gs|hf):/|(?:opus|mtdata):", re.IGNORECASE)
"""What the name of a file elsewhere begins with, or of a text that another program would download."""
BROKEN = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""Errors that reading a truncated or damaged file raises."""
_BLOCK_BYTES = 2**20


def _zstandard(path: Path, mode: str) -> IO[bytes]:
    # Python has zstd from 3.14 on; pyarrow is there anyway, as `datasets` needs it.
    import pyarrow

    return cast(IO[bytes], io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd")))


_COMPRESSIONS: dict[str, Callable[[Path, str], Any]] = {
    "": Path.open,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": _zstandard,
}
COMPRESSIONS = tuple(_COMPRESSIONS)
"""File extensions of the compressions that can be read, and "" for an uncompressed file."""


def user_path(text: str) -> Path:
    """Return the path with a leading ~ expanded; unchanged where there is no home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def without_compression(path: Path) -> Path:
    """Return train.tsv for train.tsv.gz."""
    return path.with_suffix("") if path.suffix and path.suffix.lower() in COMPRESSIONS else path


def refuse_pipe(path: Path) -> None:
    """Raise DataError for a pipe or a device: to read it twice, or to its end, would wait forever."""
    try:
        check_is_file(path)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def refuse_binary(path: Path) -> None:
    """Raise DataError for a file whose first bytes say that it is no text."""
    if error := _binary_file_error(str(path), next(read_blocks(path), b"")):
        raise error


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file for reading, plain or compressed (COMPRESSIONS); DataError if it cannot be opened."""
    opener = _COMPRESSIONS.get(path.suffix.lower(), Path.open)
    try:
        return cast(IO[bytes], opener(path, "rb"))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file{near_path(path) or held_files(path.parent)}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: cannot be read, as it is a folder{held_files(path)}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading as `open_unpacked`; UTF-16 and UTF-32 with a byte order mark are read as UTF-8."""
    stream = open_unpacked(path)
    try:
        return as_utf8(stream)
    except BROKEN as error:
        stream.close()
        raise _broken_error(f"{path}:1", error) from None


def _broken_error(place: str, error: Exception) -> DataError:
    return DataError(f"{place}: cannot be read further ({error}); is the file complete?")


def _advice(error: UnicodeDecodeError, stream: IO[bytes], name: str, *, is_utf8: bool) -> str:
    """Return advice for a line that is not UTF-8. stream: after the line. is_utf8: whether a line before it is."""
    # In the middle of a character: only after others of several bytes, as a line in Latin-1 may end so, too.
    if error.reason == "unexpected end of data" and (is_utf8 or not error.object[: error.start].isascii()):
        return "the line ends inside a character: is the file cut off, or was the text cut by bytes?"
    if is_utf8:
        return "lines before it are: mt-train --check counts those that are not, and says how to convert them alone"
    # One line often fits several languages; but a pipe may have no more for a while.
    following = stream.read(_SAMPLE_BYTES) if stream.seekable() else b""
    encoding = likely_encoding(error.object + b"\n" + following.rpartition(b"\n")[0])
    return f"convert the file first, for example: {conversion(name, encoding)}"


Repair = Callable[[int, bytes], str]
"""(number, bytes) of a line that is not UTF-8 -> the text to use for it."""


@dataclass(frozen=True)
class LineLimit:
    """The maximum number of bytes of a line, without its end: a file may have no line feeds, and memory is finite.

    key: the setting, for messages; "" for a ceiling that no setting raises.
    """

    max_bytes: int = 1_000_000
    key: str = ""

    def check(self, text: str, place: str, name: str = "the text") -> None:
        """Raise DataError if a text has more bytes. place: file and line. name: of the text, for the message."""
        # A character has at most 4 bytes in UTF-8: nearly no text need be encoded to be counted.
        if len(text) > self.max_bytes // 4 and len(text.encode("utf-8", "surrogatepass")) > self.max_bytes:
            raise self.error(place, name)

    def error(self, place: str, name: str) -> DataError:
        """Return the DataError for a text that is too long."""
        key, advice = (f" ({self.key})", "raise it") if self.key else ("", "split it, or take it out")
        size = f"{place}: {name} is longer than {self.max_bytes} bytes{key}"
        return DataError(f"{size}; is this text, one sentence a line? If so, {advice}")


LINE_LIMIT = LineLimit()


def read_lines(
    path: Path, repair: Repair | None = None, limit: LineLimit = LINE_LIMIT, stream: IO[bytes] | None = None
) -> Iterator[str]:
    """Yield every line of a UTF-8 file without its end; a BOM at the start is left out.

    stream: read in place of the file, and left open.
    """
    with open_bytes(path) if stream is None else nullcontext(as_utf8(stream, closes=False)) as lines:
        yield from decode_lines(lines, str(path), repair, limit)


def decode_lines(
    stream: IO[bytes], name: str, repair: Repair | None = None, limit: LineLimit = LINE_LIMIT
) -> Iterator[str]:
    """Yield the lines of a byte stream, split at line feeds; DataError with `name` and line number."""
    number, head = 0, b""
    is_utf8 = False  # whether an earlier line was UTF-8 beyond ASCII
    # No more is read of a line: a small compressed file may unpack to gigabytes without a line feed.
    raw_lines = iter(partial(stream.readline, limit.max_bytes + _BOM_AND_LINE_END), b"")
    try:
        for number, raw in enumerate(raw_lines, start=1):
            if number == 1:
                head = raw
                raw = raw.removeprefix(codecs.BOM_UTF8)
            # One carriage return, as files from Windows have it; a second one is text.
            line = raw.removesuffix(b"\n").removesuffix(b"\r")
            if b"\0" in line:
                raise _binary_file_error(name, head) or _nul_error(name, number)
            if len(line) > limit.max_bytes:
                raise limit.error(f"{name}:{number}", "the line")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                if repair is not None:
                    yield repair(number, line)
                    continue
                # The kind of a binary file says more than its first wrong byte.
                raise _binary_file_error(name, head) or DataError(
                    f"{name}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1}); "
                    + _advice(error, stream, name, is_utf8=is_utf8)
                ) from None
            is_utf8 = is_utf8 or not text.isascii()
            yield text
    except BROKEN as error:
        raise _broken_error(f"{name}:{number + 1}", error) from None


def count_and_digest(path: Path, limit: LineLimit = LINE_LIMIT) -> tuple[int, str]:
    """Return the number of lines (an unfinished last one counts) and the SHA-256 of the content, in one pass.

    DataError for NUL bytes and for a line far longer than `limit`: such a file is not text. A line that is
    only a little longer is reported by `decode_lines`.
    """
    count, digest, head = 0, hashlib.sha256(), b""
    unfinished = 0  # bytes since the last line feed
    for block in read_blocks(path):
        if not head:
            head = block
            # A text may begin with PAR1 or %PDF- as well.
            if (error := _binary_file_error(str(path), head)) and not is_utf8(head, is_cut=True):
                raise error
        # Text has no NUL, whereas UTF-16 without a byte order mark and most binary files do.
        if b"\0" in block:
            line = count + block[: block.index(b"\0")].count(b"\n") + 1
            raise _binary_file_error(str(path), head) or _nul_error(str(path), line)
        end = block.find(b"\n")
        if unfinished + (len(block) if end < 0 else end) > limit.max_bytes + _BOM_AND_LINE_END:
            raise limit.error(f"{path}:{count + 1}", "the line")
        # A line that begins and ends in this block is not measured: `decode_lines` reports one that is too long.
        unfinished = unfinished + len(block) if end < 0 else len(block) - block.rfind(b"\n") - 1
        digest.update(block)
        count += block.count(b"\n")
    return count + bool(unfinished), digest.hexdigest()


def read_blocks(path: Path, codec: str = "") -> Iterator[bytes]:
    """Yield the content of a file, unpacked, in blocks of a MiB; DataError for a pipe, and for a damaged file.

    codec: of its encoding, from which it is decoded to UTF-8; bytes that are not in it stay as they are.
    """
    refuse_pipe(path)
    try:
        with open_bytes(path) as stream:
            text = transcoded(stream, codec, "surrogateescape", closes=False) if codec else stream
            while block := text.read(_BLOCK_BYTES):
                yield block
    except BROKEN as error:
        raise DataError(f"{path}: cannot be read to its end ({error}); is the file complete?") from None


def count_ahead(stream: IO[bytes]) -> int:
    """Return the number of lines from a seekable stream's position on, which stays; an unfinished last one counts."""
    start, count, last = stream.tell(), 0, b"\n"
    text = as_utf8(stream, closes=False)
    while block := text.read(_BLOCK_BYTES):
        count, last = count + block.count(b"\n"), block[-1:]
    stream.seek(start)
    return count + (last != b"\n")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the content; DataError as `read_blocks`."""
    digest = hashlib.sha256()
    for block in read_blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _binary_file_error(name: str, head: bytes) -> DataError | None:
    """Return the error for a binary file whose kind is recognised by its first bytes, else None."""
    kind, advice = binary_kind(head, name)
    return DataError(f"{name}: this is {kind}, not plain text; {advice}") if kind else None


def _nul_error(name: str, number: int) -> DataError:
    return DataError(f"{name}:{number}: a NUL byte; this is not plain text (a binary file, or UTF-16 or UTF-32?)")


def near_path(path: Path) -> str:
    """Return ". Did you mean 'X'?" with an existing path like a missing one, or what it is if it exists, or ""."""
    if ADDRESS.match(str(path)):
        return "; it names what is elsewhere, and files are read: download it first"
    if path.exists():
        return f"; it is {'a file' if path.is_file() else 'a folder' if path.is_dir() else 'a pipe, socket or device'}"
    near = _nearest(path)
    return f". Did you mean '{near}'?" if near else ""


def _nearest(path: Path) -> Path | None:
    """Return the existing path that is most like a missing one, in its name or its folder's."""
    folder = path.parent if path.parent.is_dir() else _nearest(path.parent)
    if folder is None or (folder / path.name).exists():
        return folder and folder / path.name
    with suppress(OSError):  # a folder that may not be listed
        for near in get_close_matches(path.name, [each.name for each in folder.iterdir()], n=1, cutoff=0.75):
            return folder / near
    return None


def held_files(folder: Path) -> str:
    """Return "; the folder holds: a.en, b.en", its first files, for messages; that there is none, if that is so."""
    if not folder.is_dir():
        return f" (and no folder {folder})"
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    first_names = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f"; the folder holds: {first_names}" if names else "; the folder holds no files"
