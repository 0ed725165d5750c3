"""Random noun phrases and clauses: who does what to what, when and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, TypeVar

from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus import vocabulary
from sample_corpus.clause import Clause, Part, Phrase, being, object_part, of_verb
from sample_corpus.english import Mode, plural, with_article
from sample_corpus.korean import Style
from sample_corpus.lexicon import Adjective, Name, Noun, Place, Verb

Item = TypeVar("Item")
Pair = tuple[str, str]
Determiner = Literal["a", "the", "this", "that", "owned", "number", "plural"]
Pronoun = Literal["I", "you", "he", "she", "we", "they"]
PRONOUNS: tuple[Pronoun, ...] = ("I", "you", "he", "she", "we", "they")

_THIRD_PERSON = {"he": ("him", "그"), "she": ("her", "그녀"), "they": ("them", "그들")}
_OWNERS = {"my": "내", "his": "그의", "her": "그녀의", "our": "우리", "their": "그들의"}


@dataclass(slots=True)
class Draft:
    """What one sentence is made with: randomness, style, and a record of the words chosen."""

    rng: Random
    style: Style
    lexemes: set[str] = field(default_factory=set)
    pairs: set[Pair] = field(default_factory=set)

    def one_of(self, items: Sequence[Item]) -> Item:
        """Choose one item."""
        return items[self.rng.randrange(len(items))]

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.rng.random() < probability

    def weighted(self, weights: Mapping[Item, int]) -> Item:
        """Choose a key with the given integer weights."""
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def note(self, *words: Noun | Verb | Adjective | Place) -> None:
        """Record content words; two of them form a pair that can be held out."""
        self.lexemes.update(word.lexeme for word in words)
        if len(words) == 2:
            self.pairs.add((words[0].lexeme, words[1].lexeme))


def pronoun(word: Pronoun, style: Style) -> Phrase:
    """Return a personal pronoun; "you" is the one whose Korean depends on the style."""
    if word == "I":
        return Phrase("I", "나", "first", "me", "내가")
    if word == "we":
        return Phrase("we", "우리", "plural", "us")
    if word == "you":
        return Phrase("you", "당신", "plural") if style == "polite" else Phrase("you", "너", "plural", "you", "네가")
    english_object, korean = _THIRD_PERSON[word]
    return Phrase(word, korean, "plural" if word == "they" else "singular", english_object, pronoun=word)


def name_phrase(draft: Draft, name: Name | None = None) -> Phrase:
    """Return a personal name."""
    chosen = name or draft.one_of(lex.names())
    draft.lexemes.add("name:" + chosen.english)
    return Phrase(chosen.english, chosen.korean, pronoun=chosen.pronoun)


def _owner(draft: Draft) -> tuple[str, str]:
    """Return a possessive in English and Korean."""
    if draft.chance(0.4):
        name = name_phrase(draft)
        return name.english + "'s", name.korean + "의"
    if draft.chance(0.2):
        return "your", "당신의" if draft.style == "polite" else "네"
    return draft.one_of(sorted(_OWNERS.items()))


def _counted(draft: Draft, noun: Noun, english: str, korean: str) -> Phrase:
    """Return "three books" as 책 세 권: the noun, the native numeral, the counter."""
    number, numeral = draft.one_of(vocabulary.NUMBERS)
    draft.lexemes.add("number:" + number)
    draft.pairs.add(("number:" + number, noun.lexeme))
    one = number == "one"
    head = english + (noun.english if one else plural(noun.english))
    return Phrase(
        f"{number} {head}", f"{korean}{noun.korean} {numeral} {noun.counter}",
        "singular" if one else "plural", definite=False,
    )  # fmt: skip


def _plural_korean(noun: Noun) -> str:
    return noun.korean + ("들" if "person" in noun.classes else "")


def mass_phrase(draft: Draft, noun: Noun, determiner: Determiner, english: str, korean: str) -> Phrase:
    """Return an uncountable noun; drinks can be counted in cups and glasses."""
    measure = next((unit for unit in ("cup", "glass") if unit in noun.classes), None)
    if determiner == "number" and measure:
        number, numeral = draft.one_of(vocabulary.NUMBERS[:6])
        draft.lexemes.add("number:" + number)
        draft.pairs.add(("number:" + number, noun.lexeme))
        unit = measure if number == "one" else plural(measure)
        korean_words = f"{korean}{noun.korean} {numeral} 잔"
        return Phrase(f"{number} {unit} of {english}{noun.english}", korean_words, definite=False)
    if determiner in ("the", "this", "that") and "school" not in noun.classes:
        return Phrase("the " + english + noun.english, korean + noun.korean)
    return Phrase(english + noun.english, korean + noun.korean)


def noun_phrase(draft: Draft, noun: Noun, determiner: Determiner, described: bool = False) -> Phrase:
    """Return a noun with its determiner and, if asked for and possible, an adjective."""
    draft.note(noun)
    english = korean = ""
    if described and (choices := lex.adjectives_for(noun)):
        adjective = draft.one_of(choices)
        draft.note(adjective, noun)
        english, korean = adjective.english + " ", ko.adnominal(adjective.predicate, "present") + " "
    if noun.mass:
        return mass_phrase(draft, noun, determiner, english, korean)
    if determiner == "number" and noun.counter:
        return _counted(draft, noun, english, korean)
    if determiner == "plural":
        return Phrase(f"{english}{plural(noun.english)}", korean + _plural_korean(noun), "plural")
    if determiner == "owned":
        owner, korean_owner = _owner(draft)
        return Phrase(f"{owner} {english}{noun.english}", f"{korean_owner} {korean}{noun.korean}")
    if determiner in ("this", "that"):
        pointer = "이 " if determiner == "this" else "저 "
        return Phrase(f"{determiner} {english}{noun.english}", pointer + korean + noun.korean)
    if determiner == "a":
        return Phrase(with_article(english + noun.english), korean + noun.korean, definite=False)
    return Phrase(f"the {english}{noun.english}", korean + noun.korean)


def kin_phrase(draft: Draft) -> Phrase:
    """Return a family member; "my" and "our" are both 우리 here, as in speech."""
    noun = draft.one_of(lex.nouns_for(("kin",)))
    draft.note(noun)
    owner, korean = draft.one_of((("my", "우리"), ("our", "우리"), ("his", "그의"), ("her", "그녀의")))
    return Phrase(f"{owner} {noun.english}", f"{korean} {noun.korean}")


_PERSON_DETERMINERS: dict[Determiner, int] = {"the": 22, "plural": 5, "a": 7, "number": 7}


def person(draft: Draft, definite: bool = False) -> Phrase:
    """Return a human subject other than a pronoun; questions ask for a definite one."""
    if draft.chance(0.5):
        return name_phrase(draft)
    if draft.chance(0.16):
        return kin_phrase(draft)
    noun = draft.one_of(lex.nouns_for(("person",)))
    determiner = draft.weighted(_PERSON_DETERMINERS)
    if determiner == "plural":
        phrase = noun_phrase(draft, noun, "plural")
        return replace(phrase, english="the " + phrase.english)
    return noun_phrase(draft, noun, "the" if definite else determiner, draft.chance(0.3))


def subject(draft: Draft, pronouns: Sequence[Pronoun] = PRONOUNS, definite: bool = False) -> Phrase:
    """Return a human subject, a pronoun in about a third of all cases."""
    if draft.chance(0.33):
        return pronoun(draft.one_of(pronouns), draft.style)
    return person(draft, definite)


def animal_phrase(draft: Draft) -> Phrase:
    """Return an animal subject."""
    noun = draft.one_of(lex.nouns_for(("animal",)))
    determiners: dict[Determiner, int] = {"the": 60, "a": 20, "number": 20}
    return noun_phrase(draft, noun, draft.weighted(determiners), draft.chance(0.25))


def place_object(draft: Draft, verb: Verb) -> Phrase:
    """Return a place as the object of "visit" or "clean"."""
    options = lex.places() if verb.objects == ("place",) else [p for p in lex.places() if p.fits(verb.objects)]
    options = [place for place in options if place.english != "school"]
    place = draft.one_of(options)
    draft.note(verb, place)
    return Phrase(place.english, place.korean)


def friend(draft: Draft, avoid: Phrase) -> Phrase:
    """Return a particular person as an object, other than the subject."""
    while True:
        phrase = pronoun(draft.one_of(PRONOUNS), draft.style) if draft.chance(0.5) else name_phrase(draft)
        clash = {phrase.english, avoid.english}
        if len(clash) == 2 and clash != {"I", "we"} and not clash <= {"he", "she", "they"}:
            return phrase


_OBJECT_DETERMINERS: dict[Determiner, int] = {"the": 32, "a": 24, "number": 22, "owned": 8, "this": 7, "that": 7}


def chosen_object(draft: Draft, verb: Verb, subject_phrase: Phrase, generic: bool = False) -> Phrase:
    """Return an object that suits the verb."""
    if set(verb.objects) & {"place", "inside"}:
        return place_object(draft, verb)
    if "friend" in verb.objects and draft.chance(0.5):
        draft.lexemes.add(verb.lexeme)
        return friend(draft, subject_phrase)
    noun = draft.one_of(lex.nouns_for(verb.objects))
    draft.note(verb, noun)
    if "kin" in noun.classes:
        return Phrase("my " + noun.english, "우리 " + noun.korean)
    human = noun.classes[0] == "person"
    if generic and not human:
        return noun_phrase(draft, noun, "plural", draft.chance(0.2))
    determiner = draft.weighted(_OBJECT_DETERMINERS)
    if human and determiner == "owned":
        determiner = "the"
    return noun_phrase(draft, noun, determiner, draft.chance(0.25))


def time_part(draft: Draft, mode: Mode) -> Part | None:
    """Return a time expression that agrees with the tense, if the tense has any."""
    tense = "future" if mode in ("future", "can", "must") else mode
    fitting = [time for time in lex.times() if time.tense == tense or (time.tense == "both" and tense != "present")]
    if mode in ("progressive", "past progressive", "want") or not fitting:
        return Part("time", "now", "지금") if mode == "progressive" else None
    time = draft.one_of(fitting)
    return Part("time", time.english, time.korean)


def habit(draft: Draft) -> Part:
    """Return what every present tense of an action carries: how often, or at what times."""
    if draft.chance(0.5):
        english, korean = draft.one_of(vocabulary.FREQUENCIES)
        return Part("frequency", english, korean)
    time = draft.one_of([time for time in lex.times() if time.tense == "present"])
    return Part("time", time.english, time.korean)


def place_part(draft: Draft) -> Part:
    """Return the place of an action, with 에서."""
    place = draft.one_of(lex.places())
    draft.note(place)
    return Part("place", f"{place.preposition} {place.english}", place.korean + "에서")


def goal_part(draft: Draft, verb: Verb) -> Part:
    """Return where a movement ends: 에, or (으)로 for departures and journeys; 에 for living somewhere."""
    places = lex.places()
    if "toward" in verb.flags:
        places = tuple(place for place in places if place.is_city or place.head in ("airport", "village", "beach"))
    if "home" in verb.flags:
        places = tuple(place for place in places if place.is_city or place.head in ("village", "forest"))
    place = draft.one_of(places)
    draft.note(place)
    preposition = verb.forms.particle if "ride" in verb.flags else place.preposition
    korean = ko.directional(place.korean) if "toward" in verb.flags else place.korean + "에"
    return Part("goal", f"{preposition} {place.english}", korean)


# Actions that have no pace and are not done with more or less care.
_NO_PACE = (
    "invite", "help", "meet", "see", "forget", "visit", "wear", "rest", "live", "hug", "praise", "cry", "sleep",
    "arrive", "lose", "find", "wait", "laugh", "use", "borrow", "buy", "sell", "watch", "give", "lend", "send",
)  # fmt: skip
_PACES = ("quickly", "slowly", "quietly", "carefully")


def manner_part(draft: Draft, verb: Verb, subject_phrase: Phrase, mode: Mode) -> Part:
    """Return how something is done, among the manners that go with the verb, the subject and the tense."""
    unfit: set[str] = set()
    if subject_phrase.agreement != "plural" or not subject_phrase.english:
        unfit.add("together")
    if mode in ("progressive", "past progressive"):
        unfit.update(("early", "late"))
    if verb.forms.base in _NO_PACE:
        unfit.update(_PACES)
    if "friend" in verb.objects or "recipient" in verb.flags:
        unfit.update(("alone", "together"))
    english, korean = draft.one_of([manner for manner in vocabulary.MANNERS if manner[0] not in unfit])
    return Part("manner", english, korean)


def extra_part(draft: Draft, verb: Verb, subject_phrase: Phrase, mode: Mode) -> Part | None:
    """Return one optional part that the verb allows: manner, place, tool, vehicle or company."""
    kind = draft.weighted({"none": 45, "place": 25, "manner": 15, "special": 15})
    if kind == "place" and "place" in verb.flags:
        return place_part(draft)
    if kind == "manner" and not {"state", "home"} & set(verb.flags) and verb.forms.base != "lose":
        return manner_part(draft, verb, subject_phrase, mode)
    if kind == "special" and "ride" in verb.flags:
        english, korean = draft.one_of(vocabulary.RIDES)
        return Part("vehicle", "by " + english, ko.directional(korean))
    if kind == "special" and "tool" in verb.flags:
        noun = draft.one_of(lex.nouns_for(("=pencil", "=brush")))
        draft.note(noun)
        return Part("tool", "with " + with_article(noun.english), ko.directional(noun.korean))
    if kind == "special" and "place" in verb.flags and subject_phrase.agreement != "plural":
        name = name_phrase(draft)
        if name.english not in subject_phrase.english:
            return Part("company", "with " + name.english, ko.together(name.korean) + " 함께")
    return None


def _core(draft: Draft, who: Phrase, verb: Verb, mode: Mode) -> tuple[Verb, tuple[Part, ...]]:
    """Return the verb (its motion preposition moved to the goal) and its required parts."""
    draft.lexemes.add(verb.lexeme)
    if verb.objects:
        generic = mode == "present"
        parts = [object_part(chosen_object(draft, verb, who, generic))]
        if "recipient" in verb.flags:
            receiver = friend(draft, who)
            parts.append(Part("recipient", "to " + receiver.as_object, _dative(receiver)))
        return verb, tuple(parts)
    if {"goal", "toward", "home"} & set(verb.flags):
        return replace(verb, forms=replace(verb.forms, particle="")), (goal_part(draft, verb),)
    return verb, ()


def _dative(receiver: Phrase) -> str:
    return receiver.korean + "에게"


def random_mode(draft: Draft, verb: Verb) -> Mode:
    """Choose tense and aspect; states take no progressive and stand in the present more often."""
    modes: dict[Mode, int] = {"past": 45, "future": 20, "progressive": 12, "past progressive": 4, "present": 17}
    if {"state", "goal", "toward", "home"} & set(verb.flags) or verb.forms.base in ("lose", "find", "forget", "choose"):
        modes = {"past": 35, "future": 15, "present": 50 if "state" in verb.flags else 20}
    return draft.rng.choices(list(modes), list(modes.values()))[0]


def action(
    draft: Draft, who: Phrase, verb: Verb, mode: Mode | None = None, *, negative: bool = False, extras: bool = True
) -> Clause:
    """Return a clause in which ``who`` does something."""
    tense = mode or random_mode(draft, verb)
    moved, parts = _core(draft, who, verb, tense)
    habitual = tense == "present" and "state" not in verb.flags
    if habitual:
        # "Tom does not drink coffee": with "always" or "every day" a denial could be read in two ways.
        if negative:
            return of_verb(who, moved, tense, negative, parts)
        parts += (habit(draft),)
    if extras and not {"state", "home"} & set(verb.flags):
        extra = extra_part(draft, verb, who, tense)
        if extra and not (habitual and extra.slot == "manner"):
            parts += (extra,)
        if not habitual and draft.chance(0.4) and (time := time_part(draft, tense)):
            parts += (time,)
    return of_verb(who, moved, tense, negative, parts)


def human_verb(draft: Draft) -> Verb:
    """Return a verb for a human subject, with or without an object."""
    return draft.one_of(lex.verbs()) if draft.chance(0.8) else draft.one_of(lex.intransitives())


def animal_verb(draft: Draft) -> Verb:
    """Return a verb for an animal subject."""
    fitting = [verb for verb in lex.verbs() + lex.intransitives() if "animal" in verb.flags]
    return draft.one_of(fitting)


def describing(
    draft: Draft, who: Phrase, adjective: Adjective, mode: Mode = "present", negative: bool = False
) -> Clause:
    """Return a clause with an adjective as predicate."""
    draft.note(adjective)
    return being(who, adjective.predicate, adjective.english, mode, negative)
