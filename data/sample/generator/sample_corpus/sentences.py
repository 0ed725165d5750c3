"""The sentence patterns of the corpus and their random choice."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from sample_corpus import compound
from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus.clause import (
    Clause,
    Part,
    Phrase,
    Wording,
    asked,
    being,
    english_statement,
    korean_before_verb,
    korean_modifier,
    object_part,
    of_verb,
    stated,
)
from sample_corpus.english import Mode, capitalized, with_article
from sample_corpus.korean import Predicate, Style
from sample_corpus.lexicon import Noun
from sample_corpus.phrases import (
    PRONOUNS,
    Determiner,
    Draft,
    Pair,
    Pronoun,
    action,
    animal_phrase,
    animal_verb,
    chosen_object,
    describing,
    friend,
    human_verb,
    name_phrase,
    noun_phrase,
    pronoun,
    random_mode,
    subject,
)
from sample_corpus.questions import question_word, yes_no

Pattern = Callable[[Draft], Wording]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A finished pair, with the content words and the word pairs it was built from."""

    english: str
    korean: str
    lexemes: frozenset[str]
    pairs: frozenset[Pair]


def _with_time_in_front(draft: Draft, clause: Clause) -> Clause:
    times = [part for part in clause.parts if part.slot == "time" and part.english not in ("now", "soon")]
    if not times or draft.chance(0.75):
        return clause
    front = Part("front", capitalized(times[0].english), times[0].korean)
    return clause.without("time").with_parts(front)


def plain_action(draft: Draft) -> Wording:
    """Somebody or an animal does something."""
    if draft.chance(0.15):
        clause = action(draft, animal_phrase(draft), animal_verb(draft))
    else:
        clause = action(draft, subject(draft), human_verb(draft), negative=draft.chance(0.2))
    return stated(draft.style, _with_time_in_front(draft, clause))


def person_to_person(draft: Draft) -> Wording:
    """A short sentence about two people: "She helped Tom."."""
    verb = draft.one_of([verb for verb in lex.verbs() if "friend" in verb.objects and "dish" not in verb.objects])
    who = name_phrase(draft) if draft.chance(0.4) else pronoun(draft.one_of(PRONOUNS), draft.style)
    draft.lexemes.add(verb.lexeme)
    state = "state" in verb.flags
    mode: Mode = "past" if draft.chance(0.4 if state else 0.6) else "present" if state else "future"
    clause = of_verb(who, verb, mode, draft.chance(0.2), (object_part(friend(draft, who)),))
    return stated(draft.style, clause)


def wish_or_duty(draft: Draft) -> Wording:
    """Ability, duty, prohibition and wishes."""
    verb = draft.one_of([v for v in lex.verbs() + lex.intransitives() if "state" not in v.flags])
    modes: tuple[Mode, ...] = ("can", "must", "want")
    clause = action(draft, subject(draft), verb, draft.one_of(modes), negative=draft.chance(0.3))
    return stated(draft.style, clause)


def _thing_with(draft: Draft, adjective: lex.Adjective) -> Phrase:
    """Return something the adjective can describe."""
    options: list[Noun | lex.Place] = [noun for noun in lex.nouns_for(adjective.nouns) if "kin" not in noun.classes]
    options += [place for place in lex.places() if place.fits(adjective.nouns)]
    if "friend" in adjective.nouns and draft.chance(0.5):
        if draft.chance(0.5):
            return name_phrase(draft)
        return pronoun(draft.one_of(PRONOUNS), draft.style)
    chosen = draft.one_of(options)
    draft.note(adjective, chosen)
    if isinstance(chosen, lex.Place):
        draft.lexemes.add(chosen.lexeme)
        return Phrase(chosen.english, chosen.korean)
    determiners: dict[Determiner, int] = {"the": 6, "this": 2, "that": 2, "owned": 2}
    determiner = draft.weighted(determiners)
    if determiner == "owned" and chosen.classes[0] in ("person", "animal", "crossing"):
        determiner = "the"
    return noun_phrase(draft, chosen, determiner)


def quality(draft: Draft) -> Wording:
    """Something has a quality, sometimes more of it than something else."""
    adjective = draft.one_of(lex.adjectives())
    who = _thing_with(draft, adjective)
    roll = draft.rng.random()
    mode: Mode = "past" if draft.chance(0.3) else "present"
    clause = describing(draft, who, adjective, mode, negative=roll < 0.2)
    if roll > 0.85:
        return (
            asked(draft.style, replace(clause, negative=False)) if who.english != "I" else stated(draft.style, clause)
        )
    if 0.45 < roll <= 0.6:
        degree, korean_degree = draft.one_of((("very", "아주"), ("too", "너무"), ("really", "정말")))
        return stated(draft.style, clause.with_parts(Part("degree", degree, korean_degree)))
    if 0.6 < roll <= 0.85:
        other = _thing_with(draft, adjective)
        if other.english.split()[-1] != who.english.split()[-1] and other.korean != who.korean:
            compared = being(who, adjective.predicate, adjective.comparative, mode)
            than = Part("standard", "than " + other.as_object, "")
            standard = Part("degree", "", other.korean + "보다 더")
            return stated(draft.style, compared.with_parts(than, standard))
    return stated(draft.style, clause)


def profession(draft: Draft) -> Wording:
    """Somebody is, was or is not something."""
    no_work = ("man", "woman", "boy", "girl", "child", "guest", "neighbor")
    noun = draft.one_of([noun for noun in lex.nouns_for(("person",)) if noun.english not in no_work])
    draft.note(noun)
    who = name_phrase(draft) if draft.chance(0.6) else pronoun(draft.one_of(("I", "you", "he", "she")), draft.style)
    described, korean = "", ""
    if draft.chance(0.35):
        adjective = draft.one_of(lex.adjectives_for(noun))
        draft.note(adjective, noun)
        described, korean = adjective.english + " ", ko.adnominal(adjective.predicate, "present") + " "
    roll = draft.rng.random()
    mode: Mode = "past" if roll < 0.25 else "present"
    predicate = Predicate(korean + noun.korean + "이", "copula")
    clause = being(who, predicate, with_article(described + noun.english), mode, negative=roll > 0.8)
    if 0.65 < roll <= 0.8 and who.english != "I":
        return asked(draft.style, clause)
    return stated(draft.style, clause)


def existence(draft: Draft) -> Wording:
    """There is or there are: counted things at a place."""
    unplaced = {"crossing", "door", "film", "song", "written", "building"}
    noun = draft.one_of([noun for noun in lex.nouns() if noun.counter and not unplaced & set(noun.classes)])
    what = noun_phrase(draft, noun, "number" if draft.chance(0.8) else "a", draft.chance(0.3))
    place = draft.one_of(lex.places())
    draft.note(place)
    past = draft.chance(0.35)
    be = {(False, False): "is", (False, True): "are", (True, False): "was", (True, True): "were"}[
        past, what.agreement == "plural"
    ]
    predicate = Predicate("있", "exist")
    ending = ko.finish(ko.past(predicate) if past else predicate, draft.style, False)
    english = f"there {be} {what.english} {place.preposition} {place.english}"
    return english, f"{place.korean}에 {ko.nominative(what.korean)} {ending}", "."


def request(draft: Draft) -> Wording:
    """A request; the polite one begins with "please"."""
    verbs = [v for v in lex.verbs() + lex.intransitives() if not {"state", "home"} & set(v.flags)]
    verb = draft.one_of([v for v in verbs if v.forms.base not in ("lose", "forget", "see", "cry", "arrive")])
    clause = action(draft, Phrase("", "", "plural", definite=False), verb, "future").without("company")
    negative = draft.chance(0.25)
    english = english_statement(replace(clause, mode="present", negative=negative)).strip()
    korean = f"{korean_before_verb(clause, 'none')} {ko.command(clause.predicate, draft.style, negative)}".strip()
    return ("please " if draft.style == "polite" else "") + english, korean, "."


def relative(draft: Draft) -> Wording:
    """A relative clause on the object or on the subject of the main clause."""
    return _about_object(draft) if draft.chance(0.6) else _about_subject(draft)


def _modified(draft: Draft, noun: Noun, avoid: Phrase) -> tuple[Phrase, str]:
    """Return "the <noun> that <someone did>" and the verb's base form; the someone is not ``avoid``."""
    verbs = [v for v in lex.verbs() if noun.fits(v.objects) and "recipient" not in v.flags]
    verb = draft.one_of(verbs)
    draft.note(verb, noun)
    who = subject(draft, definite=True)
    while who.korean.split()[-1] == avoid.korean.split()[-1]:
        who = subject(draft, definite=True)
    mode: Mode = "future" if draft.chance(0.15) else "past"
    clause = of_verb(who, verb, mode, draft.chance(0.12))
    head = noun_phrase(draft, noun, "the", draft.chance(0.15))
    english = f"{head.english} that {english_statement(clause)}"
    return Phrase(english, f"{korean_modifier(clause, 'inner')} {head.korean}"), verb.forms.base


def _about_object(draft: Draft) -> Wording:
    """Mina found the book that Tom read; the book that Tom read is long."""
    plain = [v for v in lex.verbs() if not {"recipient", "state"} & set(v.flags) and lex.nouns_for(v.objects)]
    outer = draft.one_of(plain)
    noun = draft.one_of([n for n in lex.nouns_for(outer.objects) if "kin" not in n.classes])
    # Both subjects are definite: two nominatives in a row would be hard to read in Korean.
    who = subject(draft, definite=True)
    phrase, inner = _modified(draft, noun, who)
    adjectives = lex.adjectives_for(noun)
    if adjectives and (draft.chance(0.45) or inner == outer.forms.base):
        adjective = draft.one_of(adjectives)
        draft.note(adjective, noun)
        return stated(draft.style, describing(draft, phrase, adjective, "past" if draft.chance(0.5) else "present"))
    draft.note(outer, noun)
    mode: Mode = "future" if draft.chance(0.25) else "past"
    return stated(draft.style, of_verb(who, outer, mode, draft.chance(0.15), (object_part(phrase),)))


def _about_subject(draft: Draft) -> Wording:
    """The child who ate the apple slept."""
    noun = draft.one_of(lex.nouns_for(("person",)))
    blank = Phrase("", "", definite=False)
    inner = human_verb(draft)
    mode: Mode = "progressive" if draft.chance(0.25) and random_mode(draft, inner) == "progressive" else "past"
    clause = action(draft, blank, inner, mode, extras=False)
    head = noun_phrase(draft, noun, "the", draft.chance(0.15))
    english = f"{head.english} who {english_statement(clause, '')}"
    who = Phrase(english, f"{korean_modifier(clause, 'none')} {head.korean}")
    if draft.chance(0.4):
        adjective = draft.one_of(lex.adjectives_for(noun))
        draft.note(adjective, noun)
        return stated(draft.style, describing(draft, who, adjective, "past" if draft.chance(0.5) else "present"))
    outer = draft.one_of([v for v in lex.verbs() if v.forms.base != inner.forms.base and "recipient" not in v.flags])
    draft.lexemes.add(outer.lexeme)
    target = object_part(chosen_object(draft, outer, who))
    return stated(draft.style, of_verb(who, outer, "past", parts=(target,)))


def linked(draft: Draft) -> Wording:
    """Two clauses joined by and, but, when, if, before, after or because."""
    return compound.linked(draft)


def reference(draft: Draft) -> Wording:
    """A clause with "it", whose referent the reader has to find."""
    return compound.reference(draft)


PATTERNS: tuple[tuple[Pattern, int], ...] = (
    (plain_action, 25), (person_to_person, 7), (wish_or_duty, 6), (quality, 11), (profession, 3), (existence, 6),
    (yes_no, 6), (question_word, 8), (request, 4), (relative, 9), (linked, 11), (reference, 8),
)  # fmt: skip
_PLAIN_SHARE = 0.25


def finished(draft: Draft, wording: Wording) -> Sentence:
    """Add capital, vocative and closing mark: ", my friend" goes with the plain style, and only with it."""
    english, korean, mark = wording
    words = set(re.findall(r"[A-Za-z]+", english))
    forms = lex.surface_forms()
    # A question word can replace a noun that was chosen first: only words that can be read count.
    lexemes = frozenset(lexeme for lexeme in draft.lexemes if not words.isdisjoint(forms[lexeme]))
    pairs = frozenset((first, second) for first, second in draft.pairs if {first, second} <= lexemes)
    if draft.style == "plain":
        english, korean = english + ", my friend", "친구야, " + korean
    return Sentence(capitalized(english) + mark, korean + mark, lexemes, pairs)


def random_sentence(rng: Random) -> Sentence:
    """Return one random sentence pair."""
    draft = Draft(rng, "plain" if rng.random() < _PLAIN_SHARE else "polite")
    pattern = rng.choices([pattern for pattern, _ in PATTERNS], [weight for _, weight in PATTERNS])[0]
    return finished(draft, pattern(draft))


_ANCHOR_PEOPLE: tuple[tuple[Pronoun, Pronoun], ...] = (
    ("I", "you"), ("you", "I"), ("she", "he"), ("he", "she"), ("we", "you"), ("they", "we"),
)  # fmt: skip


def anchors() -> list[Sentence]:
    """Return the short sentences about love that the training half always holds, in both styles."""
    love = next(verb for verb in lex.verbs() if verb.forms.base == "love")
    found: list[Sentence] = []
    styles: tuple[Style, ...] = ("polite", "plain")
    for style in styles:
        for who, whom in _ANCHOR_PEOPLE:
            draft = Draft(Random(0), style)
            draft.lexemes.add(love.lexeme)
            agent, patient = pronoun(who, style), pronoun(whom, style)
            clause = of_verb(agent, love, "present", parts=(object_part(patient),))
            found.append(finished(draft, stated(draft.style, clause)))
    return found
