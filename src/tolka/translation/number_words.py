"""Words that stand for numbers, as patterns of the beginnings of words in many languages.

They tell whether the other side may have a number in words. number_words.yaml has them.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_LETTERS = "a-zäöüéèçàâêîôûãõáíóúñåæøąćęłńśźżčěřšůýžőűığşа-яёіїєґα-ωάέήίόύώ"


@cache
def cardinal_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the words for a number from 0 to 12: cardinal, ordinal, and others such as "twice"."""
    return _words(_table()["cardinals"][number], whole=4)


@cache
def month_words(number: int) -> re.Pattern[str]:
    """Return a pattern of the names of a month from 1 to 12."""
    return _words(_table()["months"][number], whole=0, not_after="")  # the day may stand before it


@cache
def round_words() -> re.Pattern[str]:
    """Return a pattern of words for round numbers above 12: tens, hundreds, thousands, and a half of them."""
    return _words(_table()["round"], whole=5)


@cache
def half_words() -> re.Pattern[str]:
    """Return a pattern of words for half an hour or a quarter."""
    return _words(_table()["half"], whole=4)


@cache
def scale_words() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return powers of ten and patterns of the words after a number that multiply it by them."""
    return tuple((power, re.compile(rf"[\s-]?(?:{listed})", re.IGNORECASE)) for power, listed in _table()["scales"])


@cache
def _table() -> Any:
    return yaml.safe_load(Path(__file__).with_name("number_words.yaml").read_text(encoding="utf-8"))


def _words(listed: str, whole: int, not_after: str = r"(?<!\d[\s-])") -> re.Pattern[str]:
    """Return a pattern of the words. whole: those of ASCII with fewer letters are whole words.

    not_after: the "thousand" of "5 thousand" is that number's.
    """
    beginnings, _, others = listed.partition(" /")
    starts = [
        f"{each.rstrip('.')}(?![{_LETTERS}])" if each[-1] == "." or (len(each) < whole and each.isascii()) else each
        for each in beginnings.split()
    ]
    after_blank = rf"{not_after}(?<![{_LETTERS}])(?:{'|'.join(starts)})"
    return re.compile("|".join([after_blank, *others.split()]), re.IGNORECASE)
