"""Flags: what a person should check in a translation.

    flags("Call 555-0199.", translation)    # ["missing_number"] if the translation lacks it

They follow rules, without a model. A flag says that something is unusual, not that it is wrong; docs/howto/quality.md
explains each. Needs no torch.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import regex

from tolka.metrics.tables import Form, table
from tolka.model_directory.verify import LengthRatio
from tolka.text.characters import CharacterForm
from tolka.text.placeholders import placeholders, without_placeholders
from tolka.text.scripts import UNSPACED
from tolka.translation.numbers import unmatched_numbers
from tolka.translation.results import Translation

if TYPE_CHECKING:
    from tolka.translation.quality import Estimate

FLAGS = (
    "low_confidence",
    "unfinished",
    "copy",
    "repetition",
    "length",
    "missing_number",
    "invented_number",
    "missing_placeholder",
    "invented_placeholder",
    "missing_term",
    "banned_phrase",
)

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
# Written without blanks between words: each character counts as a word.
_UNSPACED = regex.compile(f"[{UNSPACED}]")
_COPIED = 0.9  # least share of the source's words in a copy
_FEWEST_COPIED = 3  # words: shorter texts may be names
_LONGEST_PHRASE = 6  # words of a phrase that may be repeated
_FEWEST_REPEATED = 4  # times that a character of a text without blanks is repeated
_LONGEST_RUN = 5  # times that a letter may follow itself
# A string of letters four times in a row, as in "mainstremainstremainstremainstre", but not a laugh ("hahahaha").
_SYLLABLES = regex.compile(
    r"(?!(?:[hjхx][aeiouаеиоу]|[하호히후헤크키ㅋㅎ]|[哈呵嘿はへほ])+)(\p{L}{2,20}?)\1{3}", regex.IGNORECASE
)
_LONG_WORD = re.compile(r"[^\W\d_]{8,}")
_SEEN = CharacterForm(control="strip")  # a text as a reader sees it
_DEVIATIONS = 4.0  # of the logarithm of the length ratio
_FREE_CHARACTERS = 15  # by which any translation may differ from the expected length: short texts vary most
_WIDTH = 2  # letters of an alphabet that an ideograph or a syllable block counts as
_MOST_COUNTED = 2000  # lines of a file, some tenths of a millisecond each
_NAMED = 5  # lines of a flag
_MOST_UNKNOWN, _LEAST_UNKNOWN = 2.5, 0.4  # ratios of widths where the training text's lengths are unknown


def flags(
    source: str, translation: Translation, estimate: "Estimate | None" = None, ratio: LengthRatio | None = None
) -> list[str]:
    """Return the flags that apply to a translation, in the order of FLAGS.

    estimate: from `Translator.quality`; without it, low_confidence is never returned. ratio: from
    `Translator.length_ratio`; without it, length is returned only for a ratio that is unlikely in any two languages.
    """
    best = translation.candidates[0]
    applies = {
        "low_confidence": estimate is not None and estimate.is_low,
        "unfinished": not translation.complete,
        "missing_term": bool(best.missing),
        "banned_phrase": bool(best.banned),
    }
    of_text = text_flags(source, translation.text, ratio)
    return [flag for flag in FLAGS if applies.get(flag) or flag in of_text]


def text_flags(source: str, target: str, ratio: LengthRatio | None = None) -> list[str]:
    """Return the flags that a text has as a translation, whoever made it. ratio: as in `flags`."""
    numbers, placeholders = differing_numbers(source, target), differing_placeholders(source, target)
    applies = {
        "copy": is_copy(source, target),
        "repetition": repeats(source, target),
        "length": has_odd_length(source, target, ratio),
        "missing_number": bool(numbers[0]),
        "invented_number": bool(numbers[1]),
        "missing_placeholder": bool(placeholders[0]),
        "invented_placeholder": bool(placeholders[1]),
    }
    return [flag for flag, applies_here in applies.items() if applies_here]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; of one without blanks between words, its characters."""
    return [
        part for word in _WORD.findall(text.casefold()) for part in (list(word) if _UNSPACED.search(word) else [word])
    ]


def is_copy(source: str, target: str) -> bool:
    """Return whether the translation has nearly all words of the source, and hardly any others."""
    # Placeholders and numbers do not count: any translation copies them.
    own, others = (
        Counter(word for word in words(without_placeholders(text)) if not word.isdecimal()) for text in (source, target)
    )
    if own.total() < _FEWEST_COPIED:
        return False
    return (own & others).total() >= _COPIED * max(own.total(), others.total())


def repeats(source: str, target: str) -> bool:
    """Return whether a phrase or a string of letters follows itself in the translation more than in the source."""
    if _longest_run(target) > max(_LONGEST_RUN, _longest_run(source)):
        return True
    # Within placeholders, as in addresses, repetitions are the source's.
    if _repeats_syllables(without_placeholders(target)) and not _repeats_syllables(source):
        return True
    of_source, of_target = ([word for word in words(text) if not word.isdecimal()] for text in (source, target))
    for size in range(1, _LONGEST_PHRASE + 1):
        times, phrase = _most_in_a_row(of_target, size)
        # "very, very good" is not a mistake: one word or two must stand there three times, and longer phrases twice.
        least = 2 if size > 2 else 3
        # In a script without blanks "words" are characters, which words such as 妈妈 repeat.
        if len(phrase) == 1 and _UNSPACED.search(phrase[0]):
            least = _FEWEST_REPEATED
        if times >= least and times > _most_in_a_row(of_source, size)[0]:
            return True
    return False


def _most_in_a_row(listed: Sequence[str], size: int) -> tuple[int, Sequence[str]]:
    """Return the most times that a phrase of `size` words stands there in a row, and the phrase."""
    # A word equals the one `size` places before it as long as a phrase repeats; `run` counts such words.
    most, phrase, run = 1, listed[:size], 0
    for place in range(size, len(listed)):
        run = run + 1 if listed[place] == listed[place - size] else 0
        times = 1 + run // size
        if times > most:
            most, phrase = times, listed[place - size + 1 : place + 1]
    return most, phrase


def _longest_run(text: str) -> int:
    """Return the length of the longest run of one letter."""
    return max((len([*run]) for letter, run in groupby(text) if letter.isalpha()), default=0)


def _repeats_syllables(text: str) -> bool:
    """Return whether a word has a string of letters four times in a row."""
    return any(_SYLLABLES.search(word) for word in _LONG_WORD.findall(text))


def has_odd_length(source: str, target: str, ratio: LengthRatio | None) -> bool:
    """Return whether a translation is too short or too long for its source, by more than 15 characters."""
    source, target = _SEEN.source(source), _SEEN.source(target)
    if not source:
        return bool(target)
    if not target:
        return True
    if ratio is not None:
        # The logarithm makes half and double the expected length equally odd.
        expected, actual = math.exp(ratio.mean) * len(source), len(target)
        if abs(actual - expected) <= _FREE_CHARACTERS:
            return False
        return abs(math.log(actual / expected)) > _DEVIATIONS * ratio.deviation
    expected, actual = float(_width(source)), _width(target)
    if abs(actual - expected) <= 2 * _FREE_CHARACTERS:
        return False
    return not _LEAST_UNKNOWN <= actual / expected <= _MOST_UNKNOWN


def _width(text: str) -> int:
    """Return the number of characters, of which wide ones (ideographs, kana, Hangul) count twice."""
    return sum(_WIDTH if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def differing_numbers(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return the numbers that only the source has, and those that only the translation has; see numbers.py.

    Numbers in placeholders are left out.
    """
    return unmatched_numbers(*map(without_placeholders, (source, target)))


def differing_placeholders(source: str, target: str) -> tuple[list[str], list[str]]:
    """Return the placeholders that the source has more often, and those that the translation has more often."""
    counts = [_placeholders(text) for text in (source, target)]
    missing, invented = counts[0] - counts[1], counts[1] - counts[0]
    return list(missing.elements()), list(invented.elements())


def _placeholders(text: str) -> Counter[str]:
    # Blanks within a tag may be written otherwise.
    return Counter(re.sub(r"\s+", " ", match.group()) for match in placeholders(text))


class Flagged(NamedTuple):
    """A flag of `text_flags`: share of translations and of references that have it, and the first lines, from 1."""

    flag: str
    share: float
    of_references: float
    lines: list[int]


def count_flags(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], ratio: LengthRatio | None = None
) -> list[Flagged]:
    """Return the flags that some translation has, of lines spread evenly over the file; the rarest one last."""
    rows = range(0, len(sources), max(1, len(sources) // _MOST_COUNTED))
    found: dict[str, list[int]] = {flag: [] for flag in FLAGS}
    for row in rows:
        for flag in text_flags(sources[row], translations[row], ratio):
            found[flag].append(row + 1)
    of_references = Counter(flag for row in rows for flag in text_flags(sources[row], references[row], ratio))
    flagged = [
        Flagged(flag, len(lines) / len(rows), of_references[flag] / len(rows), lines[:_NAMED])
        for flag, lines in found.items()
        if lines
    ]
    return sorted(flagged, key=lambda each: -each.share)


def flag_table(flagged: Sequence[Flagged], form: Form = "text") -> str:
    """Return a table of what to check."""
    rows = [
        [each.flag, f"{each.share:.1%}", f"{each.of_references:.1%}", ", ".join(map(str, each.lines))]
        for each in flagged
    ]
    return table(rows, ["to check", "translations", "references", "lines"], "lrrl", form)
