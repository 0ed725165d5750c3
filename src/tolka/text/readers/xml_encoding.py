"""Decoding of XML files in any of Python's encodings: expat's only multi-byte ones are UTF-8 and UTF-16."""

import codecs
import re

from tolka.errors import DataError

_HEAD_BYTES = 1024
_DECLARED = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]{1,100})["']""")
# Declared in ASCII, UTF-16 is wrong: a program, or reading, has converted the file and not its declaration.
_LIKE_UTF8 = re.compile("utf-8(-sig)?|ascii|utf-(16|32)(-[lb]e)?")
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
    """Converts the blocks of a file to UTF-8, for expat to parse as that whatever the file declares.

    flaw: what is wrong with bytes so far that are not of the declared encoding, or "".
    """

    def __init__(self, name: str, head: bytes) -> None:
        """name: of the file. head: its first block. DataError for an unknown encoding."""
        self.flaw = ""
        self._declared, codec = _encoding_of(name, head[:_HEAD_BYTES])
        self._decoder = codec.incrementaldecoder("replace") if codec and codec.incrementaldecoder else None
        self._bytes_to_skip = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0

    def __call__(self, block: bytes, last: bool = False) -> bytes:
        """Return the next block as UTF-8."""
        block, self._bytes_to_skip = block[self._bytes_to_skip :], 0
        if self._decoder is None:
            return block
        text = self._decoder.decode(block, last)
        if "\ufffd" in text:
            self.flaw = f"a byte that is not {self._declared}, which the file says it is in"
        # XML does not allow U+FFFF, so that expat stops at it, as it does by itself at what is not UTF-8.
        return text.replace("\ufffd", "\uffff").encode("utf-8", "surrogatepass")


def _encoding_of(name: str, head: bytes) -> tuple[str, codecs.CodecInfo | None]:
    """Return the name of the encoding and its codec; no codec for UTF-8."""
    if head[:2] in (b"<\0", b"\0<"):
        return "UTF-16", codecs.lookup("utf-16-le" if head[:1] == b"<" else "utf-16-be")
    match = _DECLARED.match(head)
    if not match:
        return "", None
    declared = match[1].decode("ascii", "replace").strip()
    codec = codec_of(declared)
    if codec is None:
        raise DataError(
            f"{name}:1: the encoding '{declared}' is not known; allowed are UTF-8, UTF-16, UTF-32, ISO-8859-1 to 16, "
            "Windows-1250 to 1258, KOI8-R, GB2312, GB18030, Big5, Shift_JIS, EUC-JP, EUC-KR and the others of Python's "
            "codecs; correct the file's first line, or convert it: iconv -f ... -t UTF-8"
        )
    if head.startswith(codecs.BOM_UTF8) or _LIKE_UTF8.fullmatch(
        codec.name
    ):  # a byte order mark overrides the declaration
        return "UTF-8", None
    return declared, codec


def codec_of(declared: str) -> codecs.CodecInfo | None:
    """Return the codec of an encoding that a file names; None if there is none, or none of files."""
    name = _ALIASES.get(declared.lower(), declared)
    try:
        "".encode(name)  # LookupError for an unknown name, and for a codec that is not of text
        codec = codecs.lookup(name)
    except (LookupError, UnicodeError, ValueError):
        return None
    return None if codec.name in _NOT_OF_FILES else codecs.lookup(_SUPERSETS.get(codec.name, codec.name))
