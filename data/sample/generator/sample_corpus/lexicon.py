"""Typed access to the vocabulary: nouns, places, names, verbs, adjectives, and which go together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from sample_corpus import vocabulary
from sample_corpus.english import VerbForms, plural, regular_gerund, regular_past
from sample_corpus.korean import Irregular, Kind, Predicate

TimeTense = Literal["past", "future", "present", "both"]


@dataclass(frozen=True, slots=True)
class Noun:
    """A common noun; ``counter`` is None where numbers are not used with it."""

    english: str
    korean: str
    counter: str | None
    classes: tuple[str, ...]

    @property
    def lexeme(self) -> str:
        """The key under which this word is counted."""
        return "noun:" + self.english

    @property
    def mass(self) -> bool:
        """Whether the English noun has no plural and no "a"."""
        return "mass" in self.classes

    def fits(self, wanted: tuple[str, ...]) -> bool:
        """Tell whether one of the wanted classes, or the noun itself ("=book"), is listed."""
        if "goods" in wanted and any(name in vocabulary.GOODS for name in self.classes):
            return True
        return "=" + self.english in wanted or any(name in wanted for name in self.classes)


@dataclass(frozen=True, slots=True)
class Place:
    """A place with its English preposition."""

    english: str
    korean: str
    preposition: str

    @property
    def head(self) -> str:
        """The English word without its article."""
        return self.english.removeprefix("the ")

    @property
    def lexeme(self) -> str:
        """The key under which this word is counted."""
        return "place:" + self.head

    def fits(self, wanted: tuple[str, ...]) -> bool:
        """Tell whether this place belongs to one of the wanted classes."""
        groups = {"inside": self.english in vocabulary.INSIDE, "scenery": self.english in vocabulary.SCENERY}
        return "=" + self.head in wanted or any(member and name in wanted for name, member in groups.items())

    @property
    def is_city(self) -> bool:
        """Whether this is a town known by its name."""
        return self.english in vocabulary.CITIES


@dataclass(frozen=True, slots=True)
class Name:
    """A person's name and the English pronoun that refers back to it."""

    english: str
    korean: str
    pronoun: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with the objects it accepts."""

    forms: VerbForms
    predicate: Predicate
    objects: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def lexeme(self) -> str:
        """The key under which this word is counted."""
        return "verb:" + self.forms.base


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective with the nouns it can describe."""

    english: str
    comparative: str
    predicate: Predicate
    nouns: tuple[str, ...]

    @property
    def lexeme(self) -> str:
        """The key under which this word is counted."""
        return "adjective:" + self.english


@dataclass(frozen=True, slots=True)
class Time:
    """A time expression and the tenses it goes with."""

    english: str
    korean: str
    tense: TimeTense


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def _entries(cell: str) -> list[tuple[str, str]]:
    pairs = (entry.strip().rsplit(" ", 1) for entry in cell.split(","))
    return [(english, korean) for english, korean in pairs]


@cache
def nouns() -> tuple[Noun, ...]:
    """Return every common noun."""
    return tuple(
        Noun(english, korean, None if counter == "-" else counter, tuple(classes.split()))
        for classes, counter, cell in _rows(vocabulary.NOUNS)
        for english, korean in _entries(cell)
    )


@cache
def places() -> tuple[Place, ...]:
    """Return every place."""
    return tuple(
        Place(english, korean, preposition)
        for preposition, cell in _rows(vocabulary.PLACES)
        for english, korean in _entries(cell)
    )


@cache
def names() -> tuple[Name, ...]:
    """Return every personal name."""
    return tuple(Name(en, ko, pronoun) for pronoun, cell in _rows(vocabulary.NAMES) for en, ko in _entries(cell))


def _predicate(dictionary_form: str, irregular: str, kind: Kind) -> Predicate:
    return Predicate(dictionary_form.removesuffix("다"), kind, cast(Irregular, irregular))


def _forms(cell: str) -> VerbForms:
    words, _, particle = cell.partition("+")
    parts = words.split("/")
    past = parts[1] if len(parts) > 1 else regular_past(parts[0])
    gerund = parts[2] if len(parts) > 2 else regular_gerund(parts[0])
    return VerbForms(parts[0], past, gerund, particle)


@cache
def verbs() -> tuple[Verb, ...]:
    """Return every verb that takes an object."""
    return tuple(
        Verb(_forms(english), _predicate(korean, irregular, "verb"), tuple(objects.split()), tuple(flags.split()))
        for english, korean, irregular, objects, flags in _rows(vocabulary.VERBS)
    )


@cache
def intransitives() -> tuple[Verb, ...]:
    """Return every verb that takes no object."""
    return tuple(
        Verb(_forms(english), _predicate(korean, irregular, "verb"), (), tuple(flags.split()))
        for english, korean, irregular, flags in _rows(vocabulary.INTRANSITIVES)
    )


@cache
def adjectives() -> tuple[Adjective, ...]:
    """Return every adjective; those in 있다 conjugate as 있다 does."""
    rows: list[Adjective] = []
    for english, korean, irregular, classes in _rows(vocabulary.ADJECTIVES):
        base, _, comparative = english.partition("/")
        kind: Kind = "exist" if korean.endswith("있다") else "adjective"
        rows.append(
            Adjective(base, comparative or "more " + base, _predicate(korean, irregular, kind), tuple(classes.split()))
        )
    return tuple(rows)


@cache
def times() -> tuple[Time, ...]:
    """Return every time expression."""
    return tuple(
        Time(en.replace("_", " "), ko.replace("_", " "), cast(TimeTense, tense))
        for tense, cell in _rows(vocabulary.TIMES)
        for en, ko in _entries(cell)
    )


@cache
def nouns_for(wanted: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the common nouns that fit one of the wanted classes."""
    return tuple(noun for noun in nouns() if noun.fits(wanted))


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that can describe a noun."""
    return tuple(adjective for adjective in adjectives() if noun.fits(adjective.nouns))


@cache
def surface_forms() -> dict[str, tuple[str, ...]]:
    """Map each content lexeme to every English form it can take in the corpus."""
    forms: dict[str, tuple[str, ...]] = {}
    for noun in nouns():
        forms[noun.lexeme] = (noun.english,) if noun.mass else (noun.english, plural(noun.english))
    for verb in verbs() + intransitives():
        base = verb.forms
        forms[verb.lexeme] = tuple(dict.fromkeys((base.base, base.third, base.past, base.gerund)))
    for adjective in adjectives():
        forms[adjective.lexeme] = (adjective.english, adjective.comparative.removeprefix("more "))
    for place in places():
        forms[place.lexeme] = (place.head,)
    for name in names():
        forms["name:" + name.english] = (name.english, name.english + "'s")
    for number, _ in vocabulary.NUMBERS:
        forms["number:" + number] = (number,)
    return forms
