"""Decoding of XML files in encodings that expat does not know: its only multi-byte ones are UTF-8 and UTF-16."""

import codecs
import re

from tolka.errors import DataError
from tolka.text.lines import UTF32_BOMS

_HEAD_BYTES = 1024
_DECLARED = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]{1,100})["']""")
_EXPAT_ENCODINGS = frozenset({"utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "iso8859-1"})
# Files that declare the first encoding are often in its superset; browsers do the same (WHATWG Encoding, section 4.2).
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932", "big5": "big5hkscs"}
_ALIASES = {  # names on Windows and in browsers of encodings that Python has under another name
    "windows-31j": "cp932",
    "x-sjis": "cp932",
    "windows-874": "cp874",
    "windows-949": "cp949",
    "x-gbk": "gb18030",
}
# Python's text codecs that are not encodings of files.
_NOT_OF_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})


class XmlDecoder:
    """Converts the blocks of a file to UTF-8, or leaves them for expat to decode."""

    def __init__(self, name: str, head: bytes) -> None:
        """name: of the file. head: its first block. DataError for an unknown encoding."""
        self._name = name
        self._declared, codec = _encoding_of(name, head[:_HEAD_BYTES])
        self._decoder = codec.incrementaldecoder() if codec and codec.incrementaldecoder else None
        self._line = 1

    @property
    def encoding(self) -> str | None:
        """The encoding that expat must assume, whatever the file declares; None to let it decide."""
        return "utf-8" if self._decoder else None

    def __call__(self, block: bytes, last: bool = False) -> bytes:
        """Return the next block as UTF-8; DataError with the line of invalid bytes."""
        if self._decoder is None:
            return block
        try:
            text = self._decoder.decode(block, last)
        except UnicodeDecodeError as error:
            line = self._line + error.object[: error.start].count(b"\n")
            raise DataError(
                f"{self._name}:{line}: not {self._declared}, which the file says it is in (byte "
                f"0x{error.object[error.start]:02x}); convert it to UTF-8 with the right name: iconv -f ... -t UTF-8"
            ) from None
        self._line += text.count("\n")
        return text.encode("utf-8", "surrogatepass")


def _encoding_of(name: str, head: bytes) -> tuple[str, codecs.CodecInfo | None]:
    """Return the name of the encoding and its codec; no codec where expat decodes the file."""
    if head.startswith(UTF32_BOMS):
        return "UTF-32", codecs.lookup("utf-32")
    match = _DECLARED.match(head)
    if not match:
        return "", None
    declared = match[1].decode("ascii", "replace").strip()
    python_name = _ALIASES.get(declared.lower(), declared)
    try:
        "".encode(python_name)  # LookupError for an unknown name, and for a codec that is not of text
        codec = codecs.lookup(python_name)
    except (LookupError, UnicodeError, ValueError):
        raise _unknown(name, declared) from None
    if codec.name in _NOT_OF_FILES:
        raise _unknown(name, declared)
    if head.startswith(codecs.BOM_UTF8):  # overrides the declaration
        return "UTF-8", codecs.lookup("utf-8-sig")
    return declared, None if codec.name in _EXPAT_ENCODINGS else codecs.lookup(_SUPERSETS.get(codec.name, codec.name))


def _unknown(name: str, declared: str) -> DataError:
    return DataError(
        f"{name}:1: the encoding '{declared}' is not known; allowed are UTF-8, UTF-16, UTF-32, ISO-8859-1 to 16, "
        "Windows-1250 to 1258, KOI8-R, GB2312, GB18030, Big5, Shift_JIS, EUC-JP, EUC-KR and the others of Python's "
        "codecs; correct the file's first line, or convert it: iconv -f ... -t UTF-8"
    )
