"""Translated messages of programs (gettext, PO files)."""

import re
from collections.abc import Iterator

from tolka.errors import ConfigError, DataError
from tolka.text.pairs import Pair
from tolka.text.readers.base import BothSides, one_line, register_reader

_LINE = re.compile(r'\s*(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[(\d+)\])?)\s+)?"((?:[^"\\]|\\.)*)"\s*')
_BEGIN = re.compile(r"msgctxt\b|msgid\b")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@register_reader(".po")
class GettextFile(BothSides):
    """msgid is the source, msgstr the target; a plural form is a pair of its own.

    A fuzzy message, whose translation nobody has approved, is a pair with that flaw. Obsolete messages (#~) and the
    header are skipped.
    """

    def read(self) -> Iterator[Pair]:
        if self.columns:
            raise ConfigError(f"{self.path} has no columns: leave out corpus.columns")
        entry: dict[str, str] = {}
        fuzzy, key = False, ""
        for number, line in enumerate(self._text_lines(), 1):
            stripped = line.strip()
            comment = stripped.startswith("#")
            if "msgstr" in key and (not stripped or comment or _BEGIN.match(stripped)):
                yield from _pairs(entry, fuzzy)
                entry, fuzzy, key = {}, False, ""
            if comment:
                fuzzy |= stripped.startswith("#,") and "fuzzy" in re.split(r"[,\s]+", stripped)
            elif stripped:
                key = self._add(entry, line, key, number)
        yield from _pairs(entry, fuzzy)

    def _add(self, entry: dict[str, str], line: str, key: str, number: int) -> str:
        """Append a line's text to that of its keyword in `entry`; return the keyword. key: the previous one."""
        match = _LINE.fullmatch(line)
        if not match or not (match[1] or key):
            raise DataError(f'{self.path}:{number}: a keyword and a text in quotes are expected, as in msgid "Open"')
        key = match[1] or key
        if match[1] and key in entry:
            raise DataError(f"{self.path}:{number}: a second {key} in one message")
        entry[key] = entry.get(key, "") + _ESCAPE.sub(_unescaped, match[3])
        self.limit.check(entry[key], f"{self.path}:{number}", f"the {key}")
        return key


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    return chr(int(code[1:], 16)) if code[0] == "x" and len(code) > 1 else _ESCAPED_CHARACTERS.get(code, code)


def _pairs(entry: dict[str, str], fuzzy: bool) -> Iterator[Pair]:
    source = entry.get("msgid", "")
    if not source and not entry.get("msgctxt"):  # the header, or nothing
        return
    flaw = "fuzzy translation" if fuzzy else ""
    plural = entry.get("msgid_plural")
    if plural is None:
        yield Pair(one_line(source), one_line(entry.get("msgstr", "")), flaw)
        return
    forms = [text for key, text in entry.items() if key.startswith("msgstr[")]
    yield Pair(one_line(source), one_line(forms[0] if forms else ""), flaw)
    for form in forms[1:]:
        yield Pair(one_line(plural), one_line(form), flaw)
