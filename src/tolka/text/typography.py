"""One text in two spellings that NFC does not unite: look-alike letters, apostrophes, quotation marks, widths.

The table of them is typography.yaml.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

import regex

from tolka.system.package_data import table_beside
from tolka.text.casing import folded
from tolka.text.scripts import is_known, plain_code

# What `to` may name in the table.
_FUNCTIONS: dict[str, Callable[["regex.Match[str]"], str]] = {
    "NFC": lambda match: unicodedata.normalize("NFC", match[0]),
    "NFKC": lambda match: unicodedata.normalize("NFKC", match[0]),
    "DIGIT": lambda match: str(unicodedata.decimal(match[0])),
}


@dataclass(frozen=True)
class Spelling:
    """Two ways to write the same.

    name: the other one, for messages. usual: matches a text that has the usual one somewhere. rewrite: makes it of the
    other. least: the share of lines from which on two files differ by it.
    """

    name: str
    usual: "regex.Pattern[str]"
    rewrite: Callable[[str], str]
    least: float = 0.02

    def is_other(self, text: str) -> bool | None:
        """Return whether a text is written in the other way; None if it has neither."""
        if self.rewrite(text) != text:
            return True
        return False if self.usual.search(text) else None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Spelling":
        """Return the spelling of a row of the table."""
        rules = list(map(_compiled, row["rules"]))

        def rewrite(text: str) -> str:
            for pattern, replacement in rules:
                text = pattern.sub(replacement, text)
            return text

        return cls(row["name"], regex.compile(row["usual"]), rewrite)


def letters_of_rule(rule: Mapping[str, str]) -> dict[str, str]:
    """Return letters of a rule of the table, and what they become; none for a rule that has `to`."""
    return dict(pair.split("=", 1) for pair in rule["letters"].split(" ")) if "letters" in rule else {}


def _compiled(rule: Mapping[str, str]) -> tuple["regex.Pattern[str]", Any]:
    """Return a pattern and its replacement."""
    where, to = rule.get("where", "{}"), rule.get("to", "")
    usual = letters_of_rule(rule)
    if not usual:
        return regex.compile(where), _FUNCTIONS.get(to, to)
    one = regex.compile("|".join(map(regex.escape, usual)))
    pattern = regex.compile(where.replace("{}", f"(?:{one.pattern})"))
    return pattern, lambda match: one.sub(lambda letter: usual[letter[0]], match[0])


def _own_rows(language: str) -> list[Mapping[str, Any]]:
    """Return the table's rows of a language; "" for those of all, each once."""
    code, languages = plain_code(language), table_beside(__file__)["languages"]
    rows = chain.from_iterable(rows for codes, rows in languages.items() if code in ("", *codes.split()))
    return [*{row["name"]: row for row in rows}.values()]


def own_rules(language: str) -> list[Mapping[str, str]]:
    """Return the rules of the table by which `standard` rewrites a text of a language, in order."""
    return [rule for row in _own_rows(language) for rule in row["rules"]] if is_known(language) else []


@cache
def own_spellings(language: str) -> tuple[Spelling, ...]:
    """Return the spellings of which a language's standard, or most of its writers, have one."""
    return tuple(map(Spelling.of, _own_rows(language))) if is_known(language) else ()


@cache
def spellings(language: str) -> tuple[Spelling, ...]:
    """Return all spellings in which two texts of a language may differ; "" for an unknown one."""
    rows = table_beside(__file__)["either"]
    either = [Spelling.of(row) for row in rows if row.get("only", language) == plain_code(language)]
    # Two systems differ in the case of some words; in half of the lines one has small letters alone.
    cased = Spelling("capitals", regex.compile(r"\p{Ll}"), partial(folded, language=language), least=0.5)
    return (*map(Spelling.of, _own_rows(language)), *either, cased)


def standard(text: str, language: str) -> str:
    """Return a text in the usual spelling of its language; as it is, where the table has none."""
    for spelling in own_spellings(language):
        text = spelling.rewrite(text)
    return text
