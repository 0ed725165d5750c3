"""The numbers that one side of a pair lacks, in the ways that languages write them.

    unmatched_numbers("It costs 6,000 dollars.", "Es kostet 9.000 Dollar.")    # (["6,000"], ["9.000"])

6,000, 6.000, 6 000 and 6천 are one number; so are 1.5 million, 1,5 Millionen and 150만. Of a date, a time, a ratio or a
version each part counts: 3/14/2024 is 14.3.2024, and 1:10 is "1 to 10". The other side may have a number in words: a
whole number up to 12 or a round one, a month of a date, half an hour of a time, a fraction such as a third.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from tolka.translation.number_readings import Number, in_ascii_digits, numbers_of
from tolka.translation.number_words import cardinal_words, half_words, month_words, round_words

_DIGIT = re.compile("[\\d½¼¾⅐-⅞₀-₉]")
_BELOW_ZERO = re.compile(
    r"\b(?:minus|moins|menos|meno\b|negativ|below|unter|sous|bajo|sotto|eksi|минус|мінус|ниже)"
    "|영하|마이너스|零下|負|负|マイナス|氷点下",
    re.IGNORECASE,
)
_O_CLOCK = re.compile(r"uhr|o['’]clock|heure|hora|[시時时點]", re.IGNORECASE)
_LAST_WORD = 12
_FRACTION = re.compile("([1-9]|1[0-2])/([3-9]|1[0-2])")  # of which both numbers may be in words: "two thirds"


def unmatched_numbers(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return the numbers of the source that the target lacks, and those of the target that the source lacks."""
    if not _DIGIT.search(source) and not _DIGIT.search(target):
        return [], []
    texts = [in_ascii_digits(text) for text in (source, target)]
    # "5 degrees below zero" is -5: with such a word on either side, signs are not compared.
    signed = not any(map(_BELOW_ZERO.search, texts))
    sides = [numbers_of(text, signed) for text in texts]
    missing, invented = _without_equal(*sides)
    invented = _new(invented, sides[0])
    # First whole numbers are matched, then the parts of those that are left: dates, times, versions.
    missing, invented = _without_equal(_in_parts(missing), _in_parts(invented))
    invented = _new(invented, _in_parts(sides[0]))
    sides = [[each for each in missing if not _is_worded(each, texts[1])]]
    sides.append([each for each in invented if not _is_worded(each, texts[0])])
    # The parts of one number have its place and text: it is listed once.
    missing_texts, invented_texts = (list({each.place: each.text for each in side}.values()) for side in sides)
    return missing_texts, invented_texts


def _new(numbers: Sequence[Number], source: Sequence[Number]) -> list[Number]:
    """Return the numbers that the source has nowhere, and those in lists."""
    # In a sentence a number may be repeated where the source has a pronoun; in a list, each counts.
    known = {reading for number in source for reading in number.readings}
    return [number for number in numbers if number.in_list or not known.intersection(number.readings)]


def _without_equal(source: Sequence[Number], target: Sequence[Number]) -> tuple[list[Number], list[Number]]:
    """Return the numbers of either side without those that are equal, one to one."""
    # Reading -> places in the target, the first of which is the last of the list, to be popped.
    places: dict[str, list[int]] = {}
    # Months match last: of "3월 3일", the day is the 3 in "March 3".
    source = sorted(source, key=lambda number: number.month is not None)
    for place in sorted(range(len(target)), key=lambda place: (target[place].month is None, -place)):
        for reading in target[place].readings:
            places.setdefault(reading, []).append(place)
    used, left = set[int](), list[Number]()
    for number in source:
        for reading in number.readings:
            of_reading = places.get(reading, [])
            while of_reading and of_reading[-1] in used:  # by another of its readings
                of_reading.pop()
            if of_reading:
                used.add(of_reading.pop())
                break
        else:
            left.append(number)
    return left, [number for place, number in enumerate(target) if place not in used]


def _in_parts(numbers: Sequence[Number]) -> list[Number]:
    return [part for number in numbers for part in (number.parts or (number,))]


def _is_worded(number: Number, other: str) -> bool:
    """Return whether the other side has a word, or Roman digits, that may stand for the number."""
    if number.is_time and _has(half_words(), other):
        return True
    fraction = _FRACTION.fullmatch(number.text)
    if fraction and all(_has(cardinal_words(int(each)), other) for each in fraction.groups()):
        return True
    # Parts of a ratio or a version are never in words; those of a time are, before "o'clock" in some language.
    if number.is_part and number.month is None and not _has(_O_CLOCK, other):
        return False
    return (
        (number.word is not None and number.word <= _LAST_WORD and _has(cardinal_words(number.word), other))
        or (number.word is not None and _has(_roman(number.word), other))
        or (number.month is not None and _has(month_words(number.month), other))
        or (number.is_round and _has(round_words(), other))
    )


# Cached, since each number of a line may search the same text for the same words.
@lru_cache(maxsize=64)
def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text matches a pattern somewhere."""
    return pattern.search(text) is not None


@cache
def _roman(value: int) -> re.Pattern[str]:
    """Return a pattern of the Roman digits of a number below 40."""
    tens, ones = divmod(value, 10)
    digits = "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]
    # There are no digits for 0: a pattern that never matches.
    return re.compile(rf"(?<![A-Za-z]){digits}(?![A-Z])" if digits else "(?!)")
