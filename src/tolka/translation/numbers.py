"""The numbers that one side of a pair lacks, in the ways that languages write them.

    unmatched_numbers("It costs 6,000 dollars.", "Es kostet 9.000 Dollar.")    # (["6,000"], ["9.000"])

6,000, 6.000, 6 000 and 6천 are one number; so are 1.5 million, 1,5 Millionen and 150만. Of a date, a time, a ratio or a
version each part counts: 3/14/2024 is 14.3.2024, and 1:10 is "1 to 10". The other side may have a number in words, of
which numbers.yaml has the beginnings: a whole number up to 12 or a round one, a month, a half or a quarter.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

from tolka.system.package_data import table_beside

_DIGIT = re.compile("[\\d½¼¾⅐-⅞₀-₉]")
_FRACTION = re.compile("[½¼¾⅐-⅞]")
_QUARTERS = {"1/2": "0.5", "1/4": "0.25", "3/4": "0.75"}
_BLANKS = " \u00a0\u2009\u202f"
_POWERS = {"십": 1, "十": 1, "백": 2, "百": 2, "천": 3, "千": 3, "조": 12, "兆": 12}
_POWERS |= dict.fromkeys("만萬万", 4) | dict.fromkeys("억億亿", 8)
_UNIT = "(?:[십十백百천千]?[만萬万억億亿조兆]|[천千백百]| [萬万億亿])(?!큼)"  # 만 is ten thousand
_PIECE = re.compile(rf"(\d+(?:[.,]\d+)*+)({_UNIT}|$)")
_SUM = rf"(?:\d+(?:[.,]\d+)*+{_UNIT})"  # 1억 2000만
_RUN = re.compile(
    rf"{_SUM}(?: ?{_SUM})*+(?: ?(?!\d+ ?[년年월月일日시時])\d+(?:[.,]\d+)*+)?"  # 3456만 7898, and not 3만 2024년
    r"|\d{4}-\d\d?-\d\d?(?!\d)"
    rf"|\d+(?:[.,:/'’·٫٬h]\d+|[{_BLANKS}]\d{{3}}(?!\d))*"
)
_LONGEST_SUM = 24  # characters that are computed with; longer runs of digits are compared as they are
_HOUR = re.compile(rf"[{_BLANKS}]?(?:[ap]\.?[{_BLANKS}]?m\b|uhr|o['’]clock|[시時时点點]|h\b|час)", re.IGNORECASE)
_CLOCK = re.compile(r"(?:\d|1\d|2[0-4])[:.h][0-5]\d(?::\d\d)?")
_LAST_WORD, _LAST_ROMAN = 12, 39
_ALWAYS: tuple[str, ...] = ("cardinals", "round")  # kinds of words that may stand for any number
_LETTERS = "a-zäöüéèçàâêîôûãõáíóúñåæøąćęłńśźżčěřšůýžőűığşа-яёіїєґα-ωάέήίόύώ"
# Words of ASCII with fewer letters than this are whole words, and not beginnings.
_SHORTEST_BEGINNING = {"cardinals": 4, "months": 0, "round": 5, "half": 4}


class Number(NamedTuple):
    """A number as it stands in a text, or a part of one. readings: its possible values; equal ones share one.

    words: kinds of words that may stand for it, of `_word_pattern`.
    """

    text: str
    readings: tuple[Decimal, ...]
    words: tuple[str, ...] = _ALWAYS


def unmatched_numbers(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return the numbers of the source that the target lacks, and those of the target that the source lacks."""
    if not _DIGIT.search(source) and not _DIGIT.search(target):
        return [], []
    texts = [to_ascii_digits(text) for text in (source, target)]
    ours, theirs = (list(numbers_of(text)) for text in texts)
    free = Counter(reading for number in theirs for reading in number.readings)
    missing = list[Number]()
    for number in ours:
        found = next((reading for reading in number.readings if free[reading]), None)
        if found is None:
            missing.append(number)
        else:
            free[found] -= 1
    # A number may be repeated where the source has a pronoun.
    known = {reading for number in ours for reading in number.readings}
    invented = [number for number in theirs if known.isdisjoint(number.readings)]
    return _unworded(missing, texts[1]), _unworded(invented, texts[0])


def numbers_of(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in their order; of a date, a time, a ratio or a version its parts."""
    for match in _RUN.finditer(text):
        written, end = match[0], match.end()  # one string for all parts: a copy for each would take too long
        run = _QUARTERS.get(written, written)
        is_hour, is_clock = _HOUR.match(text, end) is not None, _CLOCK.fullmatch(run) is not None
        value, words = _decimal(run), _ALWAYS
        if readings := _sums(run):
            yield Number(written, readings)
        elif value is None or (is_hour and is_clock):
            words = (*_ALWAYS, "half") if is_clock else ("months",)
            for place, group in enumerate(re.findall(r"\d+", run)):
                if int(group[:_LONGEST_SUM]) or not place:  # 5:00 may be "5 o'clock"
                    yield Number(written, _hours(Decimal(group), is_clock and not place), words)
        else:
            scaled = (value.scaleb(power) for power, scale in _scales() if scale.match(text, end))
            words = (*_ALWAYS, "half" if is_hour or run in _QUARTERS.values() else "months")
            # The digit of a name, such as A1, is never in words.
            is_name = re.match("[A-Za-z]", text[match.start() - 1 : match.start()])
            yield Number(written, (*_hours(value, is_hour), *scaled), () if is_name else words)


def _sums(run: str) -> tuple[Decimal, ...]:
    """Return the readings of digits with units such as 만; none without a unit."""
    pieces = [(match[1], match[2].strip()) for match in _PIECE.finditer(run)]
    if not pieces or not pieces[0][1] or len(run) > _LONGEST_SUM:
        return ()
    values = [(_decimal(digits) or Decimal(re.sub(r"\D", "", digits)), unit) for digits, unit in pieces]
    total = sum((value.scaleb(sum(map(_POWERS.__getitem__, unit))) for value, unit in values), Decimal(0))
    # The sign may be another unit, as kilo in Chinese: then the digits alone are the number.
    return total, values[0][0]


def _hours(value: Decimal, is_hour: bool) -> tuple[Decimal, ...]:
    """Return the readings of a number, which as an hour is also the one of the other half of the day."""
    return (value, (value + 12) % 24) if is_hour and value <= 24 else (value,)


def _decimal(run: str) -> Decimal | None:
    """Return the value of digits with marks between them; None if the marks are not those of one number."""
    groups, marks = re.split(r"\D", run), [mark for mark in run if not mark.isdigit()]
    kinds = {*marks}
    if not marks:
        return Decimal(run)
    if kinds & set(":/h-"):
        return None
    *before, last = groups
    # Groups of three after at most three digits; of two as well, as in India. After a zero, 0.125, the mark is decimal.
    in_thousands = len(before[0]) <= 3 and before[0][0] != "0" and all(len(group) in (2, 3) for group in before[1:])
    if len(kinds) == 1 and len(last) == 3 and in_thousands and not kinds & set("·٫"):
        return Decimal("".join(groups))
    # One mark, or two kinds of which the last occurs once: 1,234.5 and 1.234,5.
    is_decimal = len(marks) == 1 or (len(kinds) == 2 and in_thousands and marks[-1] not in marks[:-1])
    return Decimal(f"{''.join(before)}.{last}") if is_decimal and marks[-1] in ".,·٫" else None


def _unworded(numbers: Sequence[Number], other: str) -> list[str]:
    """Return the texts, each once, of numbers for which the other side has no words and no Roman digits."""
    left = (number for number in numbers if not any(_has(words, other) for words in _words_for(number)))
    return list(dict.fromkeys(number.text for number in left))


def _words_for(number: Number) -> Iterator[re.Pattern[str]]:
    """Yield patterns of the words and Roman digits that may stand for a number."""
    value = number.readings[0]
    _, digits, exponent = value.normalize().as_tuple()
    for kind in number.words:
        if kind == "cardinals" and value in range(1, _LAST_ROMAN + 1):
            tens, ones = divmod(int(value), 10)
            roman = "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]
            yield re.compile(rf"(?<![A-Za-z]){roman}(?![A-Z])")
        if kind in ("cardinals", "months"):
            if value in range(kind == "months", _LAST_WORD + 1):
                yield _word_pattern(kind, int(value))
        elif kind == "half" or (len(digits) <= 2 and int(exponent) >= 0):  # "twenty", "a hundred" or "two thousand"
            yield _word_pattern(kind)


@cache
def _word_pattern(kind: str, number: int = 0) -> re.Pattern[str]:
    """Return a pattern of words, or of their beginnings, in many languages.

    cardinals: for a number from 0 to 12: cardinal, ordinal, and others such as "twice". months: names of a month from 1
    to 12. round: for round numbers above 12: tens, hundreds, thousands, and a half of them. half: half an hour or a
    quarter.
    """
    listed = table_beside(__file__)[kind]
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
def _scales() -> list[tuple[int, re.Pattern[str]]]:
    """Return powers of ten and patterns of the words after a number that multiply it by them, as "million"."""
    return [
        (power, re.compile(rf"[\s-]?(?:{listed})", re.IGNORECASE)) for power, listed in table_beside(__file__)["scales"]
    ]


# Cached, since each number of a line may search the same text for the same words.
@lru_cache(maxsize=64)
def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text matches a pattern somewhere."""
    return pattern.search(text) is not None


def to_ascii_digits(text: str) -> str:
    """Return the text with digits of every script as ASCII ones, and ½ as 1/2."""
    if text.isascii():
        return text
    text = _FRACTION.sub(lambda match: f" {unicodedata.normalize('NFKC', match[0])} ", text).replace("⁄", "/")
    return "".join(str(unicodedata.digit(each)) if each.isdecimal() or "₀" <= each <= "₉" else each for each in text)
