"""Translated messages of programs (gettext, PO files), read as msgfmt reads them."""

import gettext
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tolka.errors import DataError
from tolka.text.encodings import codec_of, transcoded
from tolka.text.lines import LineLimit, decode_lines, open_bytes, read_blocks
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader

_TOKEN = re.compile(
    r'[\s\ufeff]*(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<comment>#.*)'
    r"|(?P<keyword>domain|msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*\d{1,3}\s*\])?)|(?P<other>[^\s\ufeff].*))\s*"
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|(.))", re.DOTALL)
ESCAPED_CHARACTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
"""What stands behind a backslash -> the character that is meant."""
_CHARSET = re.compile(rb'Content-Type:[^"\n]*charset=([\w.:-]+)', re.IGNORECASE)
_HEAD_BYTES = 2**16  # in which the header stands, after comments with its authors
_FUZZY = re.compile(r"[,\s]fuzzy(?:[,\s#]|$)")
_PLURAL = re.compile(r"Plural-Forms:.*?nplurals\s*=\s*(\d)\s*;\s*plural\s*=\s*([^;\n]+)", re.IGNORECASE)


@dataclass
class Message:
    """A message. texts: by keyword: msgctxt, msgid, msgid_plural, msgstr, msgstr[0] and so on.

    places: of the same with their quotation marks, in characters of lines that a line feed joins. flag_lines: the
    comments before it that have flags.
    """

    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    flag_lines: list[str] = field(default_factory=list)

    @cached_property
    def flags(self) -> str:
        """The comments with flags, as #, fuzzy, c-format."""
        return "".join(self.flag_lines)

    @property
    def is_fuzzy(self) -> bool:
        """Whether nobody has approved its translation."""
        return _FUZZY.search(self.flags) is not None

    @property
    def is_header(self) -> bool:
        """Whether it says what the file is, and not what its program does."""
        return self.texts.get("msgid") == "" and "msgctxt" not in self.texts


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
        for message in messages(self._text_lines(), str(self.path), self.limit):
            if message.is_header and (rule := plural_rule(message.texts.get("msgstr", ""))):
                singular = rule.singular
            yield from _pairs(message, singular)

    def _text_lines(self) -> Iterator[str]:
        # The header's msgstr names the encoding, which reading that very text needs: so it is looked for in the bytes.
        codec = declared_codec(next(read_blocks(self.path), b""))
        with open_bytes(self.path) as stream:
            if codec and codec != "utf-8":  # what is not in the encoding stays, to be reported as not UTF-8
                stream = transcoded(stream, codec, "surrogateescape", closes=False)
            yield from decode_lines(stream, str(self.path), self.repair, self.limit)


def declared_codec(head: bytes) -> str | None:
    """Return Python's name of the encoding that the beginning of a PO file names; None if it names none."""
    charset = _CHARSET.search(head[:_HEAD_BYTES])
    return codec_of(charset[1].decode()) if charset else None


def messages(lines: Iterable[str], name: str, limit: LineLimit) -> Iterator[Message]:
    """Yield the messages, the header included; DataError for what is no PO file. name: of the file."""
    message, key, line_start = Message(), "", 0
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        for match in _TOKEN.finditer(line):
            kind = str(match.lastgroup)
            if kind == "other" or (kind == "text" and not key):
                raise DataError(f'{where}: a keyword and a text in quotes are expected, as in msgid "Open"')
            value, start, end = match[kind], line_start + match.start(kind), line_start + match.end(kind)
            # After msgstr, whatever is not its text or a plural form begins the next message.
            begins = kind == "comment" or (kind == "keyword" and value in ("msgctxt", "msgid", "domain"))
            if begins and key.startswith("msgstr"):
                yield message
                message, key = Message(), ""
            if kind == "comment":
                # The flags before an obsolete message (#~) are its own.
                if value.startswith("#~"):
                    message.flag_lines.clear()
                elif value.startswith("#,"):
                    message.flag_lines.append(value)
            elif kind == "text":
                # In bytes, as a number is one, and several may make a character: \303\266 is ö.
                message.texts[key] += _ESCAPE.sub(_unescaped, value.encode()).decode(errors="replace")
                message.places[key] = message.places.get(key, (start - 1, 0))[0], end + 1
                limit.check(message.texts[key], where, f"the {key}")
            else:
                key = "".join(value.split())
                if key in message.texts:
                    raise DataError(f"{where}: a second {key} in one message")
                message.texts[key] = ""
        line_start += len(line) + 1
    yield message


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Return the bytes of an escape of C."""
    octal, hexadecimal, character = match.groups()
    if character:
        return ESCAPED_CHARACTERS.get(character, character)
    # C takes any number of hexadecimal digits, and 3 octal ones may be more than a byte: the lowest 8 bits count.
    return bytes([(int(octal, 8) if octal else int(hexadecimal[-2:], 16)) % 256])


class PluralRule(NamedTuple):
    """How many plural forms a language has, which one is for n things, and for one; -1 if there is only one form."""

    forms: int
    form: Callable[[int], int]
    singular: int


def plural_rule(header: str) -> PluralRule | None:
    """Return the rule that a header names; None if it names none, or none that can be used."""
    if named := _PLURAL.search(header):
        # c2py, Python's own, checks a rule and limits its length before it compiles it.
        with suppress(ValueError, ZeroDivisionError, OverflowError, RecursionError):
            count, form = int(named[1]), gettext.c2py(named[2])
            return PluralRule(count, form, -1 if count == 1 else form(1))
    return None


def _pairs(message: Message, singular: int) -> Iterator[Pair]:
    """Yield the pairs of a message. singular: the number of the form for one thing."""
    texts = message.texts
    source = texts.get("msgid", "")
    if not source and not texts.get("msgctxt"):  # the header, or nothing
        return
    flaw = "fuzzy translation" if message.is_fuzzy else ""
    forms = {key: text for key, text in texts.items() if key.startswith("msgstr[")}
    if not forms.get("msgstr[0]"):  # not a plural, or not translated
        forms = {"msgstr": texts.get("msgstr", "")}
    for key, form in forms.items():
        # The form for one thing translates msgid. The others translate msgid_plural, and so does the only form that a
        # language such as Korean has (nplurals=1).
        translated = source if key in ("msgstr", f"msgstr[{singular}]") else texts.get("msgid_plural", source)
        yield Pair(one_line(translated), one_line(form), flaw if form else "untranslated")
