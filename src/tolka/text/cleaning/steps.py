"""The steps of cleaning, each a function of one pair."""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import regex

from tolka.errors import ConfigError
from tolka.options.checks import one_of, share_below_one, zero_or_more
from tolka.options.settings import setting
from tolka.text.characters import KEEP, CharacterForm, visible_text
from tolka.text.cleaning.markup import has_markup, without_markup
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.languages import LanguageIdentifier
from tolka.text.pairs import Pair
from tolka.text.scripts import is_in_other_script, letters_of

_EXCHANGED = "sides exchanged"
_RATIO_ALLOWANCE = 10  # characters added to both sides: a translation of "OK" may be three times as long


@dataclass(frozen=True)
class CleaningConfig:
    """The steps of cleaning; a pair with a blank side is always left out."""

    unicode: str = "keep"
    """Unicode normalisation: keep, or nfc = compose letters and their accents, also when translating"""
    control: str = "keep"
    """control and invisible characters, which no reader sees: keep, strip (also when translating), or drop the pair"""
    blanks: str = "keep"
    """no-break, thin and wide blanks: keep, space = replace (also when translating), source = only in the source"""
    typography: str = "keep"
    """look-alike letters, apostrophes, widths: keep, or standard = as is usual in a language, also when translating"""
    markup: str = "keep"
    """tags and character references of HTML and XML: keep, strip, or drop the pair"""
    max_characters: int = 2000
    """drop pairs with a longer side; 0 = keep"""
    max_ratio: float = 0.0
    """drop pairs with a side this many times as long as the other, ten characters being added to both; 0 = keep"""
    copies: bool = False
    """drop pairs whose sides are equal except for case"""
    min_letters: float = 0.0
    """drop pairs with a side of which a smaller share are letters, blanks and combining marks not counted; 0 = keep"""
    numbers: bool = False
    """drop pairs whose sides have different numbers; 1,000 equals 1.000, but 3 does not equal three"""
    script: bool = False
    """drop pairs with a side mostly in a script that its language is not written in; swapped sides are exchanged"""
    language: bool = False
    """drop pairs with a side surely in another language (extra langid); sides that are surely swapped are exchanged"""
    duplicates: str = "keep"
    """duplicate pairs: keep, exact = drop them, near = also those equal except for case and punctuation"""
    leaks: str = "keep"
    """pairs in a held-out set, ignoring case and punctuation: keep, drop the pair, or also drop equal sources"""
    own: list[str] = setting(default_factory=list, literal=True)
    """steps of one's own, after all others, by the names that 'plugins=[my_steps]' registers"""
    allow_loss: bool = setting(False, resumable=True)
    """train also where more than half of the pairs are left out, duplicates not counted, or sides are swapped"""

    def __post_init__(self) -> None:
        one_of(self, "cleaning", "unicode", ("keep", "nfc"))
        one_of(self, "cleaning", "blanks", ("keep", "space", "source"))
        one_of(self, "cleaning", "typography", ("keep", "standard"))
        one_of(self, "cleaning", "leaks", ("keep", "pair", "source"))
        for key in ("control", "markup"):
            one_of(self, "cleaning", key, ("keep", "strip", "drop"))
        one_of(self, "cleaning", "duplicates", ("keep", "exact", "near"))
        zero_or_more(self, "cleaning", "keep", "max_characters", "max_ratio")
        share_below_one(self, "cleaning", "min_letters")
        if 0 < self.max_ratio < 1:
            raise ConfigError(f"cleaning.max_ratio ({self.max_ratio:g}) must be at least 1, or 0 to keep all")

    @property
    def characters(self) -> CharacterForm:
        """The form of characters that training text and input get."""
        return CharacterForm(self.unicode, self.control, self.blanks, self.typography)


# Part of a store's key: text that another version has prepared is prepared again.
RULES = {"control": 2, "markup": 2, "numbers": 2, "script": 2, "language": 2, "typography": 1}
"""Setting -> version of what it does to a pair, raised with each change."""
Step = Callable[[Pair], Pair | str]
"""Returns the pair, changed or not, or the reason to drop it."""

OwnStep = Callable[[Pair, Direction], Pair | str]
"""A step that knows the languages, too."""
OWN_STEPS: dict[str, OwnStep] = {}
"""Name -> step of one's own; see `register_step`."""

_MARKS = regex.compile(r"\p{M}+")
# The first form has blanks between groups of three digits; cleaning.blanks makes ordinary ones of them.
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ \xa0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,'\xa0\u202f]\d+)*")
_BETWEEN_DIGITS = re.compile(r"[ .,'\xa0\u202f]")


def changes_of(config: CleaningConfig, direction: Direction = UNKNOWN) -> list[tuple[str, Step]]:
    """Return (name, step) of the steps that change pairs and drop none, in order."""
    # First, as &nbsp; and &shy; become characters that are rewritten.
    steps: list[tuple[str, Step]] = [("without markup", _strip_markup)] if config.markup == "strip" else []
    form = replace(config.characters, control="keep") if config.control == "drop" else config.characters
    return [*steps, ("characters rewritten", form.of(direction).pair)] if form != KEEP else steps


def apply_changes(pair: Pair, changes: Sequence[tuple[str, Step]]) -> Pair:
    """Return the pair stripped of surrounding whitespace, then changed by the steps of `changes_of`."""
    pair = Pair(pair.source.strip(), pair.target.strip())
    for _, step in changes:
        changed = step(pair)
        assert isinstance(changed, Pair)
        pair = changed
    return pair


def steps_of(config: CleaningConfig, direction: Direction) -> list[tuple[str, Step]]:
    """Return (name, step) of all steps, in order; the name is "" for a step that only drops pairs."""
    longest, ratio = config.max_characters, config.max_ratio
    drops: list[tuple[object, Step]] = [
        (config.control == "drop", _drop_if_side(_has_control, "control characters")),
        (config.markup == "drop", _drop_if_side(has_markup, "markup")),
        (True, lambda pair: blank_sides(pair) or pair),
        (longest, _drop_if_side(lambda text: len(text) > longest, f"over {longest} characters")),
        (ratio, drop_if(lambda pair: _is_lopsided(pair, ratio), f"one side over {ratio:g} times as long")),
        (config.copies, drop_if(lambda pair: pair.source.casefold() == pair.target.casefold(), "source copied")),
        (config.min_letters, _drop_if_side(lambda text: _has_few_letters(text, config.min_letters), "few letters")),
        (config.numbers, drop_if(lambda pair: _numbers(pair.source) != _numbers(pair.target), "numbers that differ")),
    ]
    steps = [*changes_of(config, direction), *(("", step) for is_wanted, step in drops if is_wanted)]
    if config.script:
        steps.append((_EXCHANGED, _exchange_by_script(direction)))
        steps += [("", _drop_other_script(*side)) for side in direction._asdict().items() if letters_of(side[1])]
    if config.language:
        steps.append((_EXCHANGED, _drop_other_language(direction)))
    return steps + [(name, _own(name, direction)) for name in config.own]


def register_step(name: str) -> Callable[[OwnStep], OwnStep]:
    """Return a decorator that makes a function known as a step: `'cleaning.own=[name]'`.

    It gets a pair and its `direction`, and returns the pair, changed or not, or the reason to leave it out.
    """

    def add(step: OwnStep) -> OwnStep:
        OWN_STEPS[name] = step
        return step

    return add


def _own(name: str, direction: Direction) -> Step:
    step = _own_step(name)

    def checked(pair: Pair) -> Pair | str:
        if not isinstance(found := step(pair, direction), Pair | str):
            raise ConfigError(
                f"'cleaning.own=[{name}]' returned {found!r}; a step returns the pair, or why it is left out"
            )
        return found

    return checked


def _own_step(name: str) -> OwnStep:
    if name not in OWN_STEPS:
        known = f" Known: {', '.join(sorted(OWN_STEPS))}." if OWN_STEPS else ""
        raise ConfigError(f"cleaning.own ({name}): no plugin has registered such a step: 'plugins=[my_steps]'.{known}")
    return OWN_STEPS[name]


def own_modules(config: CleaningConfig) -> dict[str, str]:
    """Return the modules of the steps of one's own, and a digest of each."""
    modules = sorted({_own_step(name).__module__ for name in config.own})
    sources = [inspect.getsource(sys.modules[name]).encode() for name in modules]
    return {name: hashlib.sha256(source).hexdigest() for name, source in zip(modules, sources, strict=True)}


def _has_control(text: str) -> bool:
    """Return whether a text has control or invisible characters; a tab is seen."""
    if text.isprintable():
        return False
    text = text.replace("\t", " ")
    return visible_text(text) != text


def _strip_markup(pair: Pair) -> Pair:
    if not any(mark in text for text in (pair.source, pair.target) for mark in "<&"):
        return pair
    texts = without_markup(pair.source), without_markup(pair.target)
    return pair if texts == (pair.source, pair.target) else Pair(*texts)


def _drop_if_side(is_bad: Callable[[str], bool], reason: str) -> Step:
    """Return a step that drops pairs with a bad side."""
    return lambda pair: reason if is_bad(pair.source) or is_bad(pair.target) else pair


def blank_sides(pair: Pair) -> str:
    """Return which of a pair's sides is blank, as the reason to drop it; "" if none is."""
    if pair.source and pair.target:
        return ""
    return "blank source" if pair.target else "blank target" if pair.source else "blank on both sides"


def drop_if(is_bad: Callable[[Pair], bool], reason: str) -> Step:
    """Return a step that drops bad pairs."""
    return lambda pair: reason if is_bad(pair) else pair


def _is_lopsided(pair: Pair, ratio: float) -> bool:
    lengths = len(pair.source) + _RATIO_ALLOWANCE, len(pair.target) + _RATIO_ALLOWANCE
    return max(lengths) > ratio * min(lengths)


def _has_few_letters(text: str, share: float) -> bool:
    characters = "".join(text.split())
    if not characters.isascii():
        # A letter with two marks is one letter of one character.
        characters = _MARKS.sub("", characters)
    return sum(map(str.isalpha, characters)) < share * len(characters)


def _numbers(text: str) -> list[int]:
    """Return the numbers in a text, sorted, with digits of any script."""
    # Python converts at most 4300 digits by default (sys.set_int_max_str_digits).
    return sorted(int(_BETWEEN_DIGITS.sub("", number)[:4000]) for number in _NUMBER.findall(text))


def _drop_other_script(side: str, language: str) -> Step:
    return drop_if(lambda pair: is_in_other_script(getattr(pair, side), language), f"{side} in another script")


def _exchange_by_script(direction: Direction) -> Step:
    """Return a step that exchanges the sides of a pair if each is mostly in the script of the other's language."""
    source, target = direction

    def step(pair: Pair) -> Pair:
        is_source_other = is_in_other_script(pair.source, source, target)
        return pair.swapped if is_source_other and is_in_other_script(pair.target, target, source) else pair

    return step


def _drop_other_language(direction: Direction) -> Step:
    """Return a step that drops pairs with a side that is surely not in its language; short texts are not identified.

    Where each side is surely in the language of the other, it exchanges them.
    """
    identifier, sides = LanguageIdentifier(), direction._asdict().items()

    def step(pair: Pair) -> Pair | str:
        of_sides = [identifier.likelihoods(text) for text in (pair.source, pair.target)]
        if all(map(identifier.is_surely, of_sides, reversed(direction), direction)):
            return pair.swapped
        for (side, language), likelihoods in zip(sides, of_sides, strict=True):
            if identifier.is_other(likelihoods, language):
                return f"{side} in another language"
        return pair

    return step
