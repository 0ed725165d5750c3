"""Noun phrases and clauses: one abstract clause, worded in English order and in Korean order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sample_corpus import korean as ko
from sample_corpus.english import BE, Agreement, Mode, VerbForms, verb_group
from sample_corpus.korean import Predicate, Style
from sample_corpus.lexicon import Verb

Slot = Literal[
    "front", "time", "frequency", "company", "place", "vehicle", "goal", "tool", "recipient", "object",
    "reason", "degree", "manner", "complement", "standard",
]  # fmt: skip
# English words, Korean words, and the closing mark.
Wording = tuple[str, str, str]
SubjectMark = Literal["main", "inner", "none"]

# Where each part stands: English after the verb ("front" and "frequency" are placed apart), Korean before it.
_ENGLISH_ORDER: tuple[Slot, ...] = (
    "degree", "complement", "object", "goal", "recipient", "manner", "tool", "vehicle", "company", "place", "standard",
    "time",
)  # fmt: skip
_KOREAN_ORDER: tuple[Slot, ...] = (
    "time", "frequency", "reason", "company", "place", "vehicle", "goal", "tool", "recipient", "object",
    "degree", "manner", "complement",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase in both languages.

    ``definite`` decides the Korean subject particle of a main clause: 은/는 for known referents, 이/가
    for new ones ("a dog", "two dogs"). ``pronoun`` is the English word that refers back to it.
    """

    english: str
    korean: str
    agreement: Agreement = "singular"
    english_object: str = ""
    korean_subject: str = ""
    definite: bool = True
    pronoun: str = ""

    @property
    def as_object(self) -> str:
        """The English wording after a verb or preposition."""
        return self.english_object or self.english

    def korean_as_subject(self, mark: SubjectMark) -> str:
        """The Korean subject with its particle; nothing where Korean leaves it out."""
        if mark == "none":
            return ""
        if mark == "main" and self.definite:
            return ko.topic(self.korean)
        return self.korean_subject or ko.nominative(self.korean)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a clause other than subject and verb; either side may be empty."""

    slot: Slot
    english: str
    korean: str


@dataclass(frozen=True, slots=True)
class Clause:
    """A subject, a verb and the rest, not yet worded."""

    subject: Phrase
    forms: VerbForms
    predicate: Predicate
    mode: Mode = "past"
    negative: bool = False
    parts: tuple[Part, ...] = ()

    def with_parts(self, *parts: Part) -> Clause:
        """Return the clause with more parts."""
        return replace(self, parts=self.parts + parts)

    def without(self, slot: Slot) -> Clause:
        """Return the clause without the parts of one slot."""
        return replace(self, parts=tuple(part for part in self.parts if part.slot != slot))


def of_verb(subject: Phrase, verb: Verb, mode: Mode, negative: bool = False, parts: tuple[Part, ...] = ()) -> Clause:
    """Build a clause around a lexical verb."""
    return Clause(subject, verb.forms, verb.predicate, mode, negative, parts)


def being(subject: Phrase, predicate: Predicate, english: str, mode: Mode, negative: bool = False) -> Clause:
    """Build a clause around "be": the English complement carries the meaning, the Korean predicate does."""
    return Clause(subject, BE, predicate, mode, negative, (Part("complement", english, ""),))


def object_part(phrase: Phrase) -> Part:
    """Return a direct object."""
    return Part("object", phrase.as_object, ko.accusative(phrase.korean))


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _english(parts: tuple[Part, ...], order: tuple[Slot, ...]) -> str:
    return _joined(*(part.english for slot in order for part in parts if part.slot == slot))


def english_statement(clause: Clause, subject: str | None = None) -> str:
    """Word a clause as an English statement; ``subject`` overrides the subject's wording."""
    auxiliary, main = verb_group(
        clause.forms, clause.subject.agreement, clause.mode, negative=clause.negative, question=False
    )
    front = _english(clause.parts, ("front",))
    words = _joined(
        clause.subject.english if subject is None else subject,
        auxiliary,
        _english(clause.parts, ("frequency",)),
        main,
        _english(clause.parts, _ENGLISH_ORDER),
    )
    return f"{front}, {words}" if front else words


def english_question(clause: Clause, asked: str = "") -> str:
    """Word a clause as an English question, led by the question word if there is one."""
    auxiliary, main = verb_group(clause.forms, clause.subject.agreement, clause.mode, negative=False, question=True)
    frequency = _english(clause.parts, ("frequency",))
    rest = _english(clause.parts, _ENGLISH_ORDER)
    return _joined(asked, auxiliary, clause.subject.english, frequency, main, rest)


def _deny(predicate: Predicate) -> Predicate:
    """Negate a tenseless predicate: -지 않다, with the two words that have a negative partner."""
    if predicate.stem == "알":
        return Predicate("모르", "verb", "르")
    if predicate.kind == "copula":
        return Predicate(ko.nominative(predicate.stem.removesuffix("이")) + " 아니", "copula")
    return ko.negated(predicate)


def korean_predicate(clause: Clause, question: bool = False) -> Predicate:
    """Return the Korean predicate with tense, modality and negation, still without its last ending."""
    base, mode, negative = clause.predicate, clause.mode, clause.negative
    if mode == "can":
        return ko.ability(base, negative)
    if mode == "must":
        return ko.obligation(base, negative)
    if mode == "want":
        own = clause.subject.english in (("you",) if question else ("I", "we"))
        base = ko.wish(base, own)
    if mode in ("progressive", "past progressive"):
        base = ko.progressive(base)
    if negative:
        base = _deny(base)
    if mode in ("past", "past progressive"):
        return ko.past(base)
    return ko.future(base) if mode == "future" else base


def korean_before_verb(clause: Clause, mark: SubjectMark) -> str:
    """Word everything that precedes the Korean predicate."""
    front = _joined(*(part.korean for part in clause.parts if part.slot == "front"))
    rest = _joined(*(part.korean for slot in _KOREAN_ORDER for part in clause.parts if part.slot == slot))
    return _joined(front, clause.subject.korean_as_subject(mark), rest)


def korean_sentence(clause: Clause, style: Style, question: bool = False, mark: SubjectMark = "main") -> str:
    """Word a clause as a finished Korean sentence without its punctuation."""
    predicate = korean_predicate(clause, question)
    return _joined(korean_before_verb(clause, mark), ko.finish(predicate, style, question))


def korean_linked(clause: Clause, ending: Callable[[Predicate], str], mark: SubjectMark) -> str:
    """Word a clause that goes on with another one; ``ending`` turns its predicate into the linking form."""
    return _joined(korean_before_verb(clause, mark), ending(korean_predicate(clause)))


def korean_modifier(clause: Clause, mark: SubjectMark) -> str:
    """Word a clause that stands before the noun it describes: "미나가 읽은"."""
    base = _deny(clause.predicate) if clause.negative else clause.predicate
    tense: Literal["past", "future", "present"] = "past"
    if clause.mode in ("present", "progressive"):
        tense = "present"
        base = ko.progressive(base) if clause.mode == "progressive" else base
    elif clause.mode == "future":
        tense = "future"
    return _joined(korean_before_verb(clause, mark), ko.adnominal(base, tense))


def stated(style: Style, clause: Clause) -> Wording:
    """Word a clause as a statement."""
    return english_statement(clause), korean_sentence(clause, style), "."


def asked(style: Style, clause: Clause, english_word: str = "") -> Wording:
    """Word a clause as a question."""
    return english_question(clause, english_word), korean_sentence(clause, style, question=True), "?"
