"""The numbers of a text, read in the ways that languages write them."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from tolka.translation.number_words import roman_digits, scale_words, word_pattern

_BLANKS = " \u00a0\u2009\u202f"
_POWERS = {"십": 1, "十": 1, "백": 2, "百": 2, "천": 3, "千": 3, "조": 12, "兆": 12}
_POWERS |= dict.fromkeys("만萬万", 4) | dict.fromkeys("억億亿", 8)
_UNIT = "(?:[십十백百천千]?[만萬万억億亿조兆]|[천千백百]| [萬万億亿])(?!큼)"  # 만 is ten thousand
_OFTEN_NO_UNIT = "千兆조"  # kilo and mega in Chinese and Japanese, an article of a law in Korean
_PIECE = re.compile(rf"(\d+(?:[.,]\d+)*+)({_UNIT}|$)")
_SUM = rf"(?:\d+(?:[.,]\d+)*+{_UNIT})"  # 1억 2000만
_RUN = re.compile(
    rf"{_SUM}(?: ?{_SUM})*+(?: ?(?!\d+ ?[년年월月일日시時])\d+(?:[.,]\d+)*+)?"  # 3456만 7898, and not 3만 2024년
    r"|\d{4}-\d\d?-\d\d?(?!\d)"
    rf"|\d+(?:[.,:/'’·٫٬h]\d+|[{_BLANKS}]\d{{3}}(?!\d))*"
)
_LONGEST_SUM = 24  # characters that are computed with; longer runs of digits are compared as they are
_MINUS = re.compile(r"(?:^|[\s(\[{\"'„“«»:=<>≤≥,;])([-\N{MINUS SIGN}\N{EN DASH}])$")
_HOUR = re.compile(rf"[{_BLANKS}]?(?:[ap]\.?[{_BLANKS}]?m\b|uhr|o['’]clock|[시時时点點]|h\b|час)", re.IGNORECASE)
_MONTH = re.compile(r" ?[월月]")
_DECADE = re.compile(r"'?s\b|er\b|-?х\b|년대|年代")
_FRACTION = re.compile("[½¼¾⅐-⅞]")
_QUARTERS = {"1/2": "5e-1", "1/4": "25e-2", "3/4": "75e-2"}
_CLOCK = re.compile(r"(\d\d?)[:.h](\d\d)(?::\d\d)?")
_O_CLOCK = re.compile(r"uhr|o['’]clock|heure|hora|[시時时點]", re.IGNORECASE)
_MONTHS = range(1, 13)
_LAST_WORD, _LAST_ROMAN = 12, 39

Words = tuple[re.Pattern[str], ...]
"""Patterns, all of which a text has if it has a number in words."""


class Number(NamedTuple):
    """A number as it stands in a text, from `place` on.

    readings: its possible values, the likeliest first; numbers that share one are equal. parts: of a date, a time, a
    ratio or version. in_words: the ways in which words or Roman digits may stand for it, or for this part of it.
    is_month: whether it may be one.
    """

    text: str
    place: int
    readings: tuple[str, ...]
    parts: tuple["Number", ...] = ()
    in_words: tuple[Words, ...] = ()
    is_month: bool = False


def numbers_of(text: str, signed: bool) -> list[Number]:
    """Return the numbers of a text in their order. signed: whether a minus counts."""
    return [_number(text, *match.span(), signed) for match in _RUN.finditer(text)]


def _number(text: str, start: int, end: int, signed: bool) -> Number:
    run, groups = text[start:end], re.split(r"\D", text[start:end])
    if (total := _sum(run)) is not None:
        # The sign may be another unit: then the digits alone are the number.
        raw = (_reading(*_as_decimal(run[:-1]) or ("", "")),) if run[-1] in _OFTEN_NO_UNIT else ()
        return Number(run, start, (total, *raw), in_words=(*_words_for(None, _is_round(total)),))
    is_hour = _HOUR.match(text, end) is not None
    decimal = _as_decimal(run)
    if decimal is None or (is_hour and _minutes(run)):
        return _of_parts(run, start, groups)
    whole, fraction = decimal
    readings = [_reading(whole, fraction, power) for power in (0, *_powers(text, end))]
    if sign := _MINUS.search(text[max(0, start - 2) : start]) if signed else None:
        readings = [f"-{reading}" for reading in readings]
    if (minutes := _minutes(run)) or (is_hour and (minutes := _minutes(f"{run}:00"))):
        readings.append(minutes)
    # The '90s may be the 1990s, or those of another century.
    if _DECADE.match(text, end):
        readings += [_reading(century + whole) for century in ("18", "19", "20") if len(whole) == 2]
    is_plain = len(groups) == 1 and not sign and not re.match("[A-Za-z]", text[start - 1 : start])
    value = int(run) if is_plain and len(run) < 3 else None  # of at most two digits: more are never spelt out
    is_month = value in _MONTHS and _MONTH.match(text, end) is not None
    in_words = [*_words_for(value, not sign and _is_round(readings[0]))]
    if is_month:
        in_words.append((word_pattern("months", int(run)),))
    if is_hour or readings[0] in _QUARTERS.values():
        in_words.append((word_pattern("half"),))
    # 25.8. may be the 25th of August.
    parts = _of_parts(run, start, groups).parts if _is_date(groups) and text[end : end + 1] == "." else ()
    return Number((sign[1] if sign else "") + run, start, tuple(readings), parts, tuple(in_words), is_month)


def _words_for(value: int | None, is_round: bool, beside: Words = ()) -> Iterator[Words]:
    """Yield the ways to write a number up to 12 or a round one in words, and one up to 39 in Roman digits.

    value: None = a larger number, or no whole one. beside: what the text has as well.
    """
    if value is not None and value <= _LAST_WORD:
        yield (*beside, word_pattern("cardinals", value))
    if value and value <= _LAST_ROMAN:
        yield (*beside, roman_digits(value))
    if is_round:
        yield (*beside, word_pattern("round"))


def _of_parts(run: str, start: int, groups: Sequence[str]) -> Number:
    """Return a date, a time, a ratio or a version."""
    minutes, values = _minutes(run), [group.lstrip("0") or "0" for group in groups]
    may_have_month = _is_date(groups) and ":" not in run
    readings = [",".join(values)] + [each for each in (minutes, _QUARTERS.get(run)) if each]
    # Words of the whole: a half of an hour or of anything. Parts of a ratio or a version are never in words; those of a
    # time are, before "o'clock" in some language.
    of_all: list[Words] = [(word_pattern("half"),)] if minutes or run in _QUARTERS else []
    parts = []
    for place, value in enumerate(values):
        of_part = [_reading(value)]
        if minutes and place and value == "0":  # 5:00 may be "5 o'clock"
            continue
        if minutes and not place:
            of_part.append(_minutes(f"{value}:00"))
        in_words = [*of_all, *(_words_for(int(value), True, (_O_CLOCK,)) if minutes else ())]
        is_month = may_have_month and len(value) < 3 and int(value) in _MONTHS
        if is_month:
            in_words.append((word_pattern("months", int(value)),))
        parts.append(Number(run, start, tuple(of_part), in_words=tuple(in_words), is_month=is_month))
    return Number(run, start, tuple(readings), tuple(parts))


def _is_date(groups: Sequence[str]) -> bool:
    return len(groups) in (2, 3) and all(len(group) in (1, 2, 4) for group in groups)


def _minutes(run: str) -> str:
    """Return the reading of a time; "" if the run is not a time."""
    # 15:30 and 3:30 pm are one time: hours count up to 12.
    match = _CLOCK.fullmatch(run)
    if not match or int(match[1]) > 24 or int(match[2]) > 59:
        return ""
    return f"at {int(match[1]) % 12}:{match[2]}"


def _as_decimal(run: str) -> tuple[str, str] | None:
    """Return the digits before and after the decimal mark; None if the marks are not those of one number."""
    groups, marks = re.split(r"\D", run), [mark for mark in run if not mark.isdigit()]
    kinds = {*marks}
    if not marks:
        return run, ""
    if kinds & set(":/h-"):
        return None
    *before, last = groups
    # Groups of three after at most three digits; of two as well, as in India. After a zero, 0.125, the mark is decimal.
    in_thousands = len(before[0]) <= 3 and before[0][0] != "0" and all(len(group) in (2, 3) for group in before[1:])
    if len(kinds) == 1 and len(last) == 3 and in_thousands and not kinds & set("·٫"):
        return "".join(groups), ""
    # One mark, or two kinds of which the last occurs once: 1,234.5 and 1.234,5.
    is_decimal = len(marks) == 1 or (len(kinds) == 2 and in_thousands and marks[-1] not in marks[:-1])
    return ("".join(before), last) if is_decimal and marks[-1] in ".,·٫" else None


def _reading(whole: str, fraction: str = "", power: int = 0) -> str:
    """Return a number as digits and a power of ten, the same for all ways to write it: 1.50 is 15e-1."""
    digits = (whole + fraction).lstrip("0")
    shortest = digits.rstrip("0")
    return f"{shortest}e{power - len(fraction) + len(digits) - len(shortest)}" if digits else "0"


def _is_round(reading: str) -> bool:
    """Return whether a number may be written as "twenty", "a hundred" or "two thousand"."""
    digits, _, power = reading.partition("e")
    return len(digits) <= 2 and not power.startswith("-")


def _sum(run: str) -> str | None:
    """Return the reading of digits with units such as 만; None without a unit."""
    pieces = [(match[1], match[2].strip()) for match in _PIECE.finditer(run)]
    if not pieces or not pieces[0][1] or len(run) > _LONGEST_SUM:
        return None
    total = Decimal(0)
    for digits, unit in pieces:
        whole, fraction = _as_decimal(digits) or (re.sub(r"\D", "", digits), "")
        total += Decimal(f"{whole}.{fraction or '0'}") * 10 ** sum(_POWERS[each] for each in unit)
    whole, _, fraction = f"{total:f}".partition(".")
    return _reading(whole, fraction)


def _powers(text: str, end: int) -> list[int]:
    """Return the powers of ten by which the words after a number may multiply it, as those of "1.5 million"."""
    return [power for power, words in scale_words() if words.match(text, end)]


def in_ascii_digits(text: str) -> str:
    """Return the text with digits of every script as ASCII ones, and ½ as 1/2."""
    if text.isascii():
        return text
    text = _FRACTION.sub(lambda match: f" {unicodedata.normalize('NFKC', match[0])} ", text).replace("⁄", "/")
    return "".join(str(unicodedata.digit(each)) if each.isdecimal() or "₀" <= each <= "₉" else each for each in text)
