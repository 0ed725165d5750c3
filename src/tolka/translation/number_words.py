"""Words that stand for numbers, as patterns of the beginnings of words in many languages.

They tell whether the other side may have a number in words. number_words.yaml has them.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_LETTERS = "a-zäöüéèçàâêîôûãõáíóúñåæøąćęłńśźżčěřšůýžőűığşа-яёіїєґα-ωάέήίόύώ"


# Words of ASCII with fewer letters than this are whole words, and not beginnings.
_SHORTEST_BEGINNING = {"cardinals": 4, "months": 0, "round": 5, "half": 4}


@cache
def word_pattern(kind: str, number: int = 0) -> re.Pattern[str]:
    """Return a pattern of the words of one kind.

    cardinals: for a number from 0 to 12: cardinal, ordinal, and others such as "twice". months: names of a month from 1
    to 12. round: for round numbers above 12: tens, hundreds, thousands, and a half of them. half: half an hour or a
    quarter.
    """
    listed = _table()[kind]
    beginnings, _, others = (listed if isinstance(listed, str) else listed[number]).partition(" /")
    starts = [
        f"{each.rstrip('.')}(?![{_LETTERS}])"
        if each[-1] == "." or (len(each) < _SHORTEST_BEGINNING[kind] and each.isascii())
        else each
        for each in beginnings.split()
    ]
    # The "thousand" of "5 thousand" is that number's; before a month, the day may stand.
    not_after = "" if kind == "months" else r"(?<!\d[\s-])"
    after_blank = rf"{not_after}(?<![{_LETTERS}])(?:{'|'.join(starts)})"
    return re.compile("|".join([after_blank, *others.split()]), re.IGNORECASE)


@cache
def roman_digits(value: int) -> re.Pattern[str]:
    """Return a pattern of the Roman digits of a number from 1 to 39."""
    tens, ones = divmod(value, 10)
    digits = "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]
    return re.compile(rf"(?<![A-Za-z]){digits}(?![A-Z])")


@cache
def scale_words() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Return powers of ten and patterns of the words after a number that multiply it by them."""
    return tuple((power, re.compile(rf"[\s-]?(?:{listed})", re.IGNORECASE)) for power, listed in _table()["scales"])


@cache
def _table() -> Any:
    return yaml.safe_load(Path(__file__).with_name("number_words.yaml").read_text(encoding="utf-8"))
