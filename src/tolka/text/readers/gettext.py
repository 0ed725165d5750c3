"""Translated messages of programs (gettext, PO files), read as msgfmt reads them."""

import gettext
import re
from collections.abc import Iterator

from tolka.errors import DataError
from tolka.text.encodings import codec_of, transcoded
from tolka.text.lines import decode_lines, open_bytes, read_blocks
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader

_TOKEN = re.compile(
    r'\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<comment>#.*)'
    r"|(?P<keyword>domain|msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*\d{1,3}\s*\])?))\s*"
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|(.))", re.DOTALL)
_ESCAPED_CHARACTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_CHARSET = re.compile(rb'Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
_BEGINNING = re.compile(r"\s*(?:$|#|msgctxt\b|msgid\b)")  # of a line that begins a message, or stands before one
_HEAD_BYTES = 2**16  # in which the header stands, after comments with its authors
_FUZZY = re.compile(r"#,(?:.*[,\s])?fuzzy(?:[,\s]|$)")
_PLURAL = re.compile(r"Plural-Forms:.*?nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)", re.IGNORECASE)

Message = dict[str, list[str]]
"""The parts of the texts of a message by keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0] and so on."""


@register_reader(".po")
class GettextFile(BothSides):
    """Messages of a program: msgid is the source, msgstr the target; a plural form is a pair of its own.

    A fuzzy message, whose translation nobody has approved, is a pair with that flaw. Obsolete messages (#~) and the
    header are skipped.
    """

    has_columns = False
    version = "3"
    _size = 0  # bytes of the text that is being read

    def read(self) -> Iterator[Pair]:
        message: Message = {}
        is_fuzzy, is_broken, key, singular = False, False, "", 0
        for number, line in enumerate(self._text_lines(), 1):
            # The rest of a broken message would be errors as well.
            if is_broken and not _BEGINNING.match(line):
                continue
            is_broken = False
            try:
                for kind, value in self._tokens(line, number):
                    # After msgstr, whatever is not its text or a plural form begins the next message.
                    if key.startswith("msgstr") and (kind == "comment" or value in ("msgctxt", "msgid", "domain")):
                        texts = _joined(message)
                        singular = _singular_form(texts, singular)
                        yield from _pairs(texts, is_fuzzy, singular)
                        message, is_fuzzy, key = {}, False, ""
                    if kind == "comment":
                        # The flags before an obsolete message (#~) are its own.
                        is_fuzzy = not value.startswith("#~") and (is_fuzzy or _FUZZY.match(value) is not None)
                    else:
                        key = self._add(message, kind, value, key, number)
            except DataError as error:
                # msgfmt, too, makes nothing of a file with an error in it.
                if self.repair is None:
                    raise
                yield Pair(str(error), "", "not a gettext message")
                message, is_fuzzy, key, is_broken = {}, False, "", True
        texts = _joined(message)
        yield from _pairs(texts, is_fuzzy, _singular_form(texts, singular))

    def _text_lines(self) -> Iterator[str]:
        # The header's msgstr names the encoding, which reading that very text needs: so it is looked for in the bytes.
        charset = _CHARSET.search(next(read_blocks(self.path), b"")[:_HEAD_BYTES])
        codec = codec_of(charset[1].decode()) if charset else None
        with open_bytes(self.path) as stream:
            if codec and codec != "utf-8":  # what is not in the encoding stays, to be reported as not UTF-8
                stream = transcoded(stream, codec, "surrogateescape", closes=False)
            yield from decode_lines(stream, str(self.path), self.repair, self.limit)

    def _tokens(self, line: str, number: int) -> Iterator[tuple[str, str]]:
        """Yield the kind and value of each token of a line. number: of the line, for errors."""
        place, line = 0, line.strip()
        while place < len(line):
            match = _TOKEN.match(line, place)
            if match is None:
                raise self._unexpected(number)
            place = match.end()
            assert match.lastgroup is not None
            yield match.lastgroup, match[match.lastgroup]

    def _add(self, message: Message, kind: str, value: str, key: str, number: int) -> str:
        """Add a token to a message; return the keyword that the next text belongs to. key: that of this one."""
        if kind != "text":
            value = "".join(value.split())
            if value in message:
                raise DataError(f"{self.path}:{number}: a second {value} in one message")
            message[value], self._size = [], 0
            return value
        if not key:
            raise self._unexpected(number)
        text = _unescaped(value)
        message[key].append(text)
        self._size += len(text.encode())
        if self._size > self.limit.max_bytes:
            raise self.limit.error(f"{self.path}:{number}", f"the {key}")
        return key

    def _unexpected(self, number: int) -> DataError:
        return DataError(f'{self.path}:{number}: a keyword and a text in quotes are expected, as in msgid "Open"')


def _unescaped(text: str) -> str:
    """Replace the escapes of C."""
    # In bytes, as a number is one, and several may make a character: \303\266 is ö.
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescaped_byte, text.encode()).decode(errors="replace")


def _unescaped_byte(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, character = match.groups()
    if character:
        return _ESCAPED_CHARACTERS.get(character, character)
    # C takes any number of hexadecimal digits, and 3 octal ones may be more than a byte: the lowest 8 bits count.
    return bytes([(int(octal, 8) if octal else int(hexadecimal[-2:], 16)) % 256])


def _joined(message: Message) -> dict[str, str]:
    return {key: "".join(parts) for key, parts in message.items()}


def _singular_form(message: dict[str, str], known: int) -> int:
    """Return the number of the plural form for one thing, if the message is the header; -1 if there is only one form.

    known: what earlier messages said.
    """
    is_header = message.get("msgid") == "" and "msgctxt" not in message
    rule = _PLURAL.search(message.get("msgstr", "")) if is_header else None
    if rule is None:
        return known
    # c2py, Python's own, checks a rule and limits its length before it compiles it.
    try:
        return -1 if int(rule[1]) == 1 else int(gettext.c2py(rule[2])(1))
    except (ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return known


def _pairs(message: dict[str, str], is_fuzzy: bool, singular: int) -> Iterator[Pair]:
    """Yield the pairs of a message. singular: see `_singular_form`."""
    source = message.get("msgid", "")
    if not source and not message.get("msgctxt"):  # the header, or nothing
        return
    flaw = "fuzzy translation" if is_fuzzy else ""
    forms = {key: text for key, text in message.items() if key.startswith("msgstr[")}
    if not forms.get("msgstr[0]"):  # not a plural, or not translated
        forms = {"msgstr": message.get("msgstr", "")}
    for key, form in forms.items():
        # The form for one thing translates msgid. The others translate msgid_plural, and so does the only form that a
        # language such as Korean has (nplurals=1).
        translated = source if key in ("msgstr", f"msgstr[{singular}]") else message.get("msgid_plural", source)
        yield Pair(one_line(translated), one_line(form), flaw if form else "untranslated")
