"""Text that is not UTF-8: the encoding it is probably in, how to convert it, and UTF-16 and UTF-32 read as UTF-8."""

import codecs
import io
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

# In this order: the first begins with UTF-16's.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# Windows-1252 stands for ISO-8859-1, whose letters it has: the bytes 0x80 to 0x9f are text in it alone.
_GUESSED = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "iso8859-2", "koi8-r"),
    *("cp874", "cp932", "cp949", "euc-jp", "gb18030", "big5"),
)
# Those of DOS, only where a letter of theirs that is a quotation mark in Windows-1252 stands inside of a word.
_OF_DOS, _IN_WORD = ("cp850", "cp852"), re.compile(rb"[A-Za-z][\x81\x82\x84\x87\x93\x94][A-Za-z]")
# Files that declare the first encoding are often in its superset; browsers do the same (WHATWG Encoding, section 4.2).
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"}
# Names on Windows and in browsers of encodings that Python has under another name; windows-874 is its cp874.
_ALIASES = {"windows-31j": "cp932", "x-sjis": "cp932", "x-gbk": "gb18030"}
_UNPACK = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}
_BLOCK_BYTES = 2**16


def likely_encoding(text: bytes) -> str:
    """Return the encoding in which the lines that are not UTF-8 read most like text, named as iconv and Python do."""
    import chardet

    lines = b"\n".join(line for line in text.split(b"\n") if not is_utf8(line))
    guessed = (*_GUESSED, *_OF_DOS) if _IN_WORD.search(lines) else _GUESSED
    found = chardet.detect(lines, include_encodings=guessed, empty_input_encoding="cp1252")["encoding"]
    return (found or "Windows-1252").upper()


def conversion(name: str, encoding: str, *, is_mixed: bool = False) -> str:
    """Return the command that writes a file in UTF-8 under a new name.

    name: of the file, or of a stream. is_mixed: whether lines in UTF-8, at which iconv stops, are left as they are.
    """
    path, to_utf8 = Path(name), f"iconv -f {encoding} -t UTF-8"
    if is_mixed:
        to_utf8 = (
            f"""perl -MEncode -pe '$_ = encode("UTF-8", decode("{encoding}", $_)) """
            """unless eval { decode("UTF-8", my $line = $_, 1); 1 }'"""
        )
    if not path.is_file():
        return f"{to_utf8} FILE > NEW"
    plain = path.with_suffix("") if path.suffix.lower() in _UNPACK else path
    new = shlex.quote(str(plain.with_name(f"{plain.stem}-utf8{plain.suffix}")))
    if plain == path:
        return f"{to_utf8} {shlex.quote(name)} > {new}"
    return f"{_UNPACK[path.suffix.lower()]} -dc {shlex.quote(name)} | {to_utf8} > {new}"


def codec_of(declared: str) -> str | None:
    """Return Python's name of an encoding that a file names; None if there is none."""
    name = _ALIASES.get(declared.lower()) or re.sub("(?i)^windows-", "cp", declared)
    try:
        "".encode(name)  # LookupError for an unknown name, and for a codec that is not of text
        codec = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        return None
    return _SUPERSETS.get(codec, codec)


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


def as_utf8(stream: IO[bytes], *, closes: bool = True) -> IO[bytes]:
    """Return the stream; one that begins with a byte order mark of UTF-16 or UTF-32 as UTF-8.

    closes: whether closing what is returned closes the stream.
    """
    if hasattr(stream, "peek"):
        head = stream.peek(4)
    else:  # as a stream in memory
        head = stream.read(4)
        stream.seek(-len(head), io.SEEK_CUR)
    encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")
    return transcoded(stream, encoding, "surrogatepass", closes=closes) if encoding else stream


def transcoded(stream: IO[bytes], encoding: str, errors: str, *, closes: bool = True) -> IO[bytes]:
    """Return a stream in another encoding as UTF-8; reading raises EOFError where it is not in that encoding.

    errors: how Python decodes and encodes; with surrogateescape, bytes that are not in the encoding stay as they are.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors)

    def blocks() -> Iterator[bytes]:
        block = b"begun"
        while block:
            block = cast(io.BufferedReader, stream).read1(_BLOCK_BYTES)
            try:
                text = decoder.decode(block, not block)
            except UnicodeError as error:
                raise EOFError(f"not {encoding}: {getattr(error, 'reason', error)}") from None
            yield text.encode("utf-8", errors)

    return cast(IO[bytes], io.BufferedReader(BlockStream(blocks(), stream.close if closes else lambda: None)))


def is_utf8(text: bytes, *, is_cut: bool = False) -> bool:
    """Return whether bytes are UTF-8. is_cut: whether they may end inside a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text, not is_cut)
    except UnicodeDecodeError:
        return False
    return True
