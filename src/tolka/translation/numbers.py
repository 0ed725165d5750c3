"""The numbers that one side of a pair lacks, in the ways that languages write them.

    unmatched_numbers("It costs 6,000 dollars.", "Es kostet 9.000 Dollar.")    # (["6,000"], ["9.000"])

6,000, 6.000, 6 000 and 6천 are one number; so are 1.5 million, 1,5 Millionen and 150만. Of a date, a time, a ratio or a
version each part counts: 3/14/2024 is 14.3.2024, and 1:10 is "1 to 10". The other side may have a number in words: a
whole number up to 12 or a round one, a month of a date, half an hour of a time, a half or a quarter.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from tolka.translation.number_readings import Number, in_ascii_digits, numbers_of

_DIGIT = re.compile("[\\d½¼¾⅐-⅞₀-₉]")
_BELOW_ZERO = re.compile(
    r"\b(?:minus|moins|menos|meno\b|negativ|below|unter|sous|bajo|sotto|eksi|минус|мінус|ниже)"
    "|영하|마이너스|零下|負|负|マイナス|氷点下",
    re.IGNORECASE,
)


def unmatched_numbers(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return the numbers of the source that the target lacks, and those of the target that the source lacks."""
    if not _DIGIT.search(source) and not _DIGIT.search(target):
        return [], []
    texts = [in_ascii_digits(text) for text in (source, target)]
    # "5 degrees below zero" is -5: with such a word on either side, signs are not compared.
    signed = not any(map(_BELOW_ZERO.search, texts))
    source_numbers, target_numbers = (numbers_of(text, signed) for text in texts)
    missing, invented = source_numbers, target_numbers
    # First whole numbers are matched, then the parts of those that are left: dates, times, versions.
    for read in (list[Number], _in_parts):
        missing, invented = _without_equal(read(missing), read(invented))
        # A number may be repeated where the source has a pronoun.
        known = {reading for number in read(source_numbers) for reading in number.readings}
        invented = [number for number in invented if known.isdisjoint(number.readings)]
    # The parts of one number have its place and text: it is listed once.
    missing_texts, invented_texts = (
        list({each.place: each.text for each in numbers if not _is_worded(each, other)}.values())
        for numbers, other in ((missing, texts[1]), (invented, texts[0]))
    )
    return missing_texts, invented_texts


def _without_equal(source: Iterable[Number], target: Sequence[Number]) -> tuple[list[Number], list[Number]]:
    """Return the numbers of either side without those that are equal, one to one."""
    # Months match last: of "3월 3일", the day is the 3 in "March 3".
    places_of_readings = defaultdict[str, list[int]](list)
    for place in sorted(range(len(target)), key=lambda place: target[place].is_month):
        for reading in target[place].readings:
            places_of_readings[reading].append(place)
    # Iterators, each of which goes on behind the places that it has given.
    places = {reading: iter(listed) for reading, listed in places_of_readings.items()}
    used, left = set[int](), list[Number]()
    for number in sorted(source, key=lambda number: number.is_month):
        free = (place for reading in number.readings for place in places.get(reading, ()) if place not in used)
        if (found := next(free, None)) is None:
            left.append(number)
        else:
            used.add(found)
    return left, [number for place, number in enumerate(target) if place not in used]


def _in_parts(numbers: Iterable[Number]) -> list[Number]:
    return [part for number in numbers for part in (number.parts or (number,))]


def _is_worded(number: Number, other: str) -> bool:
    """Return whether the other side has words, or Roman digits, that may stand for the number."""
    return any(all(_has(word, other) for word in words) for words in number.in_words)


# Cached, since each number of a line may search the same text for the same words.
@lru_cache(maxsize=64)
def _has(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text matches a pattern somewhere."""
    return pattern.search(text) is not None
