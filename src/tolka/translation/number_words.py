"""Words that stand for numbers, as patterns of the beginnings of words in many languages.

They tell whether the other side may have a number in words. Patterns are compiled when they are first needed. The words
are in number_words.yaml.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_LETTERS = "a-zäöüéèçàâêîôûãõáíóúñåæøąćęłńśźżčěřšůýžőűığşа-яёіїєґα-ωάέήίόύώ"


@cache
def cardinal_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the words for a number from 0 to 12: cardinal, ordinal, and others such as "twice"."""
    return _words(_table()["numbers"][number][1], whole=4)


@cache
def month_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the names of a month from 1 to 12."""
    return _words(_table()["months"][number - 1][1], whole=0)


@cache
def round_words() -> re.Pattern[str]:
    """Return a pattern of words for round numbers above 12: tens, hundreds, thousands, and a half of them."""
    return _words(_table()["large"], whole=5)


@cache
def half_words() -> re.Pattern[str]:
    """Return a pattern of words for half an hour or a quarter."""
    return _words(_table()["half"], whole=4)


@cache
def scale_words() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return powers of ten and patterns of the words after a number that multiply it by them."""
    return tuple((power, re.compile(rf"[\s-]?(?:{listed})", re.IGNORECASE)) for power, listed in _table()["scales"])


@cache
def _table() -> Mapping[str, Any]:
    """Return the words: patterns of each number, [number, patterns], and of others."""
    text = Path(__file__).with_name("number_words.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def _words(listed: str, whole: int) -> re.Pattern[str]:
    """Return a pattern of the words. whole: those of ASCII with fewer letters are whole words."""
    beginnings, _, others = listed.partition(" /")
    starts = [
        f"{each.rstrip('.')}(?![{_LETTERS}])" if each[-1] == "." or (len(each) < whole and each.isascii()) else each
        for each in beginnings.split()
    ]
    # Not after a letter, which would be inside a word; nor after digits: the "thousand" of "5 thousand" is theirs.
    after_blank = rf"(?<!\d[\s-])(?<![{_LETTERS}])(?:{'|'.join(starts)})"
    return re.compile("|".join([after_blank, *others.split()]), re.IGNORECASE)
