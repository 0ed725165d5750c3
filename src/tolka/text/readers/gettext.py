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
_HEAD_BYTES = 2**16  # in which the header stands, after comments with its authors
_FUZZY = re.compile(r"#,(?:.*[,\s])?fuzzy(?:[,\s]|$)")
_PLURAL = re.compile(r"Plural-Forms:.*?nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)", re.IGNORECASE)

Message = dict[str, str]
"""The texts of a message by keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0] and so on."""


@register_reader(".po")
class GettextFile(BothSides):
    """Messages of a program: msgid is the source, msgstr the target; a plural form is a pair of its own.

    A fuzzy message, whose translation nobody has approved, is a pair with that flaw. Obsolete messages (#~) and the
    header are skipped.
    """

    has_columns = False
    version = "3"

    def read(self) -> Iterator[Pair]:
        singular = 0
        for message, is_fuzzy in self._messages():
            singular = _singular_form(message, singular)
            yield from _pairs(message, is_fuzzy, singular)

    def _messages(self) -> Iterator[tuple[Message, bool]]:
        """Yield the messages, the header included, and whether each is fuzzy."""
        message, is_fuzzy, key = Message(), False, ""
        for number, line in enumerate(self._text_lines(), 1):
            place = f"{self.path}:{number}"
            for kind, value in _tokens(line, place):
                # After msgstr, whatever is not its text or a plural form begins the next message.
                begins = kind == "comment" or (kind == "keyword" and value in ("msgctxt", "msgid", "domain"))
                if begins and key.startswith("msgstr"):
                    yield message, is_fuzzy
                    message, is_fuzzy, key = {}, False, ""
                if kind == "comment":
                    # The flags before an obsolete message (#~) are its own.
                    is_fuzzy = not value.startswith("#~") and (is_fuzzy or _FUZZY.match(value) is not None)
                elif kind == "text":
                    if not key:
                        raise _unexpected(place)
                    # In bytes, as a number is one, and several may make a character: \303\266 is ö.
                    message[key] += _ESCAPE.sub(_unescaped, value.encode()).decode(errors="replace")
                    self.limit.check(message[key], place, f"the {key}")
                else:
                    key = "".join(value.split())
                    if key in message:
                        raise DataError(f"{place}: a second {key} in one message")
                    message[key] = ""
        yield message, is_fuzzy

    def _text_lines(self) -> Iterator[str]:
        # The header's msgstr names the encoding, which reading that very text needs: so it is looked for in the bytes.
        charset = _CHARSET.search(next(read_blocks(self.path), b"")[:_HEAD_BYTES])
        codec = codec_of(charset[1].decode()) if charset else None
        with open_bytes(self.path) as stream:
            if codec and codec != "utf-8":  # what is not in the encoding stays, to be reported as not UTF-8
                stream = transcoded(stream, codec, "surrogateescape", closes=False)
            yield from decode_lines(stream, str(self.path), self.repair, self.limit)


def _tokens(line: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and value of each token of a line. where: file and line, for errors."""
    place, line = 0, line.strip()
    while place < len(line):
        match = _TOKEN.match(line, place)
        if match is None:
            raise _unexpected(where)
        place = match.end()
        assert match.lastgroup is not None
        yield match.lastgroup, match[match.lastgroup]


def _unexpected(where: str) -> DataError:
    return DataError(f'{where}: a keyword and a text in quotes are expected, as in msgid "Open"')


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Return the bytes of an escape of C."""
    octal, hexadecimal, character = match.groups()
    if character:
        return _ESCAPED_CHARACTERS.get(character, character)
    # C takes any number of hexadecimal digits, and 3 octal ones may be more than a byte: the lowest 8 bits count.
    return bytes([(int(octal, 8) if octal else int(hexadecimal[-2:], 16)) % 256])


def _singular_form(message: Message, known: int) -> int:
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


def _pairs(message: Message, is_fuzzy: bool, singular: int) -> Iterator[Pair]:
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
