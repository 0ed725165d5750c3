"""Sentences of two clauses: coordination, subordination, and "it" that points back."""

from __future__ import annotations

from dataclasses import replace

from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus.clause import (
    Clause,
    Part,
    Phrase,
    Wording,
    being,
    english_statement,
    korean_linked,
    korean_sentence,
    object_part,
    of_verb,
)
from sample_corpus.english import Mode
from sample_corpus.korean import Predicate
from sample_corpus.lexicon import Adjective, Noun, Verb
from sample_corpus.phrases import (
    Draft,
    action,
    human_verb,
    name_phrase,
    noun_phrase,
    person,
    pronoun,
    subject,
)


def _but(predicate: Predicate) -> str:
    return predicate.stem + "지만"


def _and(predicate: Predicate) -> str:
    return predicate.stem + "고"


def _because(predicate: Predicate) -> str:
    return predicate.stem + "기 때문에"


def _when(predicate: Predicate) -> str:
    return ko.prospective(predicate) + " 때"


def _before(predicate: Predicate) -> str:
    return predicate.stem + "기 전에"


def _after(predicate: Predicate) -> str:
    return ko.adnominal(predicate, "past") + " 후에"


def _verb(base: str) -> Verb:
    return next(verb for verb in lex.verbs() + lex.intransitives() if verb.forms.base == base)


def _noun(english: str) -> Noun:
    return next(noun for noun in lex.nouns() if noun.english == english)


def _adjective(english: str) -> Adjective:
    return next(adjective for adjective in lex.adjectives() if adjective.english == english)


def linked(draft: Draft) -> Wording:
    """Two clauses joined by and, but, when, if, before, after or because."""
    kind = draft.weighted({"contrast": 35, "moment": 15, "condition": 14, "order": 18, "cause": 18})
    if kind == "contrast":
        return _contrast(draft)
    if kind == "moment":
        return _moment(draft)
    if kind == "condition":
        return _condition(draft)
    return _order(draft) if kind == "order" else _cause(draft)


def _two_people(draft: Draft) -> tuple[Phrase, Phrase]:
    first, second = name_phrase(draft), subject(draft, ("I", "you", "we", "they"), definite=True)
    while second.english.startswith(first.english):
        second = person(draft, definite=True)
    return first, second


def _contrast(draft: Draft) -> Wording:
    """Mina read the book, but Tom did not watch the movie."""
    first, second = _two_people(draft)
    mode: Mode = "past" if draft.chance(0.7) else "future"
    opposed = draft.chance(0.6)
    left = action(draft, first, human_verb(draft), mode, extras=draft.chance(0.7))
    right = action(
        draft, second, human_verb(draft), mode, negative=opposed and draft.chance(0.5), extras=draft.chance(0.3)
    )
    english = f"{english_statement(left)}, {'but' if opposed else 'and'} {english_statement(right)}"
    korean = korean_linked(left, _but if opposed else _and, "main")
    return english, f"{korean} {korean_sentence(right, draft.style)}", "."


def _moment(draft: Draft) -> Wording:
    """When Mina arrived at the station, Tom was sleeping."""
    first, second = _two_people(draft)
    trigger = draft.one_of([_verb(base) for base in ("arrive", "come", "go", "return", "open", "close", "see", "meet")])
    left = action(draft, first, trigger, "past", extras=False)
    mode: Mode = "past progressive" if draft.chance(0.5) else "past"
    ongoing = [v for v in lex.verbs() if not {"state", "recipient"} & set(v.flags)]
    ongoing = [v for v in ongoing if v.forms.base not in ("lose", "find", "forget", "choose")]
    right = action(draft, second, draft.one_of(ongoing), mode, extras=False)
    english = f"when {english_statement(left)}, {english_statement(right)}"
    return english, f"{korean_linked(left, _when, 'inner')} {korean_sentence(right, draft.style)}", "."


def _condition(draft: Draft) -> Wording:
    """If Mina comes to the park, Tom will rest."""
    first, second = _two_people(draft)
    triggers = ("go", "come", "return", "help", "buy", "sell", "find", "open", "invite")
    trigger = _verb(draft.one_of(triggers))
    bare = action(draft, first, trigger, "past", extras=False)
    left = replace(bare, mode="present")
    right = action(draft, second, human_verb(draft), "future", negative=draft.chance(0.2), extras=False)
    english = f"if {english_statement(left)}, {english_statement(right)}"
    return english, f"{korean_linked(left, ko.conditional, 'inner')} {korean_sentence(right, draft.style)}", "."


def _back_to(who: Phrase) -> Phrase:
    """Return the English pronoun for a subject; Korean leaves the repeated subject out."""
    if who.pronoun:
        return Phrase(who.pronoun, who.korean, who.agreement)
    return who


def _known_person(draft: Draft) -> Phrase:
    """Return a subject with one possible pronoun."""
    if draft.chance(0.6):
        return name_phrase(draft)
    return pronoun(draft.one_of(("I", "he", "she", "we", "they")), draft.style)


def _order(draft: Draft) -> Wording:
    """Mina washed the apple before she ate the bread."""
    who = _known_person(draft)
    first = action(draft, who, human_verb_of_action(draft), "past", extras=False)
    again = action(draft, _back_to(who), human_verb_of_action(draft), "past", extras=False)
    before = draft.chance(0.5)
    english = f"{english_statement(first)} {'before' if before else 'after'} {english_statement(again)}"
    # 전에 and 후에 carry the order themselves, so the Korean verb before them stands without tense.
    timeless = replace(again, mode="present")
    inner = korean_linked(timeless, _before if before else _after, "none")
    subject_words = who.korean_as_subject("main")
    return english, f"{subject_words} {inner} {korean_sentence(first, draft.style, mark='none')}", "."


def human_verb_of_action(draft: Draft) -> Verb:
    """Return a verb that names an event rather than a state."""
    verbs = [v for v in lex.verbs() + lex.intransitives() if not {"state", "recipient", "home"} & set(v.flags)]
    return draft.one_of([v for v in verbs if v.forms.base not in ("lose", "forget", "find")])


_FEELINGS_STOP = ("tired", "sick", "busy", "sad")
_FEELINGS_DRIVE = ("happy", "tired", "sad", "hungry", "thirsty")
_DONE_WHEN = {
    "happy": ("dance", "laugh", "sing", "hug"), "tired": ("rest", "sleep"), "sad": ("cry",),
    "hungry": ("eat", "cook"), "thirsty": ("drink",),
}  # fmt: skip


def _cause(draft: Draft) -> Wording:
    """Mina did not go to school because she was sick."""
    who = _known_person(draft)
    stopped = draft.chance(0.6)
    feeling = _adjective(draft.one_of(_FEELINGS_STOP if stopped else _FEELINGS_DRIVE))
    verb = human_verb_of_action(draft) if stopped else _verb(draft.one_of(_DONE_WHEN[feeling.english]))
    main = action(draft, who, verb, "past", negative=stopped, extras=not stopped)
    draft.note(feeling)
    reason = being(_back_to(who), feeling.predicate, feeling.english, "past")
    if draft.chance(0.5):
        reason = reason.with_parts(Part("degree", "very", "아주"))
    english = f"{english_statement(main)} because {english_statement(reason)}"
    korean = f"{who.korean_as_subject('main')} {korean_linked(reason, _because, 'none')}"
    return english, f"{korean} {korean_sentence(main, draft.style, mark='none')}", "."


def reference(draft: Draft) -> Wording:
    """A clause with "it", whose referent the reader has to find."""
    kind = draft.weighted({"meal": 38, "crossing": 20, "fit": 20, "price": 14, "later": 8})
    if kind == "meal":
        return _meal(draft)
    if kind == "crossing":
        return _crossing(draft)
    if kind == "fit":
        return _fit(draft)
    return _price(draft) if kind == "price" else _later(draft)


def _explained(
    draft: Draft, main: Clause, actor: Phrase, thing: Phrase, blamed: str, why: Adjective, degree: tuple[str, str]
) -> Wording:
    """Word a main clause and its reason, "it was ...", about the actor or about the thing.

    The Korean reason names the referent. What is named there is then taken up by 그것 (the thing)
    or left out (the actor), so the two readings differ in more than one word.
    """
    referent = actor if blamed == "actor" else thing
    it = Phrase("it", referent.korean, korean_subject=ko.nominative(referent.korean))
    reason = being(it, why.predicate, why.english, "past").with_parts(Part("degree", *degree))
    english = f"{english_statement(main)} because {english_statement(reason)}"
    korean = korean_linked(reason, _because, "inner")
    if blamed == "actor":
        return english, f"{korean} {korean_sentence(main, draft.style, mark='none')}", "."
    shown = main.without("object").with_parts(Part("object", "", "그것을"))
    return english, f"{korean} {korean_sentence(shown, draft.style)}", "."


def _the_or_a(draft: Draft, noun: Noun) -> Phrase:
    return noun_phrase(draft, noun, "the" if noun.mass or draft.chance(0.8) else "a")


_MEAL_REASONS = {
    ("actor", False): ("tired", "sick", "full"),
    ("thing", False): ("cold", "hot", "salty", "spicy", "bitter"),
    ("actor", True): ("hungry", "thirsty"),
    ("thing", True): ("delicious", "fresh", "sweet"),
}


def _meal(draft: Draft) -> Wording:
    """The dog did not drink the milk because it was too cold."""
    blamed, eaten = draft.one_of(sorted(_MEAL_REASONS))
    verb = _verb("eat" if draft.chance(0.6) else "drink")
    why = _adjective(draft.one_of(_MEAL_REASONS[blamed, eaten]))
    if blamed == "actor" and eaten:
        why = _adjective("hungry" if verb.forms.base == "eat" else "thirsty")
    foods = [noun for noun in lex.nouns_for(verb.objects) if blamed == "actor" or noun.fits(why.nouns)]
    if not foods:
        verb = _verb("drink" if verb.forms.base == "eat" else "eat")
        foods = [noun for noun in lex.nouns_for(verb.objects) if noun.fits(why.nouns)]
    animal, food = draft.one_of(lex.nouns_for(("animal",))), draft.one_of(foods)
    draft.note(verb, food)
    draft.note(why, animal if blamed == "actor" else food)
    actor, thing = noun_phrase(draft, animal, "the"), _the_or_a(draft, food)
    main = of_verb(actor, verb, "past", not eaten, (object_part(thing),))
    return _explained(draft, main, actor, thing, blamed, why, ("very", "아주") if eaten else ("too", "너무"))


# Keyed by (way, driven): what stops an animal is not what stops a truck.
_WAY_REASONS: dict[tuple[str, bool], tuple[str, ...]] = {
    ("river", False): ("deep", "wide", "dangerous"),
    ("road", False): ("wide", "dangerous"),
    ("bridge", False): ("narrow", "dangerous"),
    ("road", True): ("narrow", "dangerous"),
    ("bridge", True): ("narrow", "dangerous"),
}


def _crossing(draft: Draft) -> Wording:
    """The truck did not cross the bridge because it was too narrow."""
    driven, blamed = draft.chance(0.5), draft.one_of(("actor", "thing"))
    mover = draft.one_of(lex.nouns_for(("motor",) if driven else ("animal",)))
    way = draft.one_of([_noun("bridge"), _noun("road")] if driven else lex.nouns_for(("crossing",)))
    actor_reasons = ("big", "slow") if driven else ("tired", "sick")
    why = _adjective(draft.one_of(actor_reasons if blamed == "actor" else _WAY_REASONS[way.english, driven]))
    draft.note(_verb("cross"), way)
    draft.note(why, mover if blamed == "actor" else way)
    actor, thing = noun_phrase(draft, mover, "the"), noun_phrase(draft, way, "the")
    main = of_verb(actor, _verb("cross"), "past", True, (object_part(thing),))
    return _explained(draft, main, actor, thing, blamed, why, ("too", "너무"))


_FITTING = ("book", "dictionary", "clock", "camera", "ball", "doll", "hat", "lamp", "mirror", "gift", "toy", "radio")


def _fit(draft: Draft) -> Wording:
    """The clock did not fit in the bag because it was too small."""
    item, holder = _noun(draft.one_of(_FITTING)), draft.one_of(lex.nouns_for(("container",)))
    item_blamed = draft.chance(0.5)
    why = _adjective("big" if item_blamed else "small")
    draft.note(item)
    draft.note(holder)
    draft.note(why, item if item_blamed else holder)
    english = f"the {item.english} did not fit in the {holder.english} because it was too {why.english}"
    referent = item if item_blamed else holder
    reason = f"{ko.nominative(referent.korean)} 너무 {_because(ko.past(why.predicate))}"
    place = f"{holder.korean}에" if item_blamed else f"{ko.topic(item.korean)} 그 안에"
    ending = ko.finish(ko.past(ko.negated(Predicate("들어가", "verb"))), draft.style, False)
    return english, f"{reason} {place} {ending}", "."


def _price(draft: Draft) -> Wording:
    """Mina did not buy the bag because it was too expensive."""
    verb, bought = _verb("buy"), draft.chance(0.4)
    why = _adjective("cheap" if bought else draft.one_of(("expensive", "dirty", "big", "small", "heavy")))
    if bought and draft.chance(0.5):
        why = _adjective(draft.one_of(("pretty", "useful", "beautiful")))
    goods = draft.one_of([n for n in lex.nouns_for(verb.objects) if n.fits(why.nouns) and not n.mass])
    draft.note(verb, goods)
    draft.note(why, goods)
    actor, thing = _known_person(draft), noun_phrase(draft, goods, "the")
    main = of_verb(actor, verb, "past", not bought, (object_part(thing),))
    return _explained(draft, main, actor, thing, "thing", why, ("very", "아주") if bought else ("too", "너무"))


_LATER = (("buy", "eat"), ("buy", "read"), ("borrow", "use"), ("buy", "wear"), ("wash", "eat"), ("buy", "use"))


def _later(draft: Draft) -> Wording:
    """Mina bought an apple, but she did not eat it."""
    first, second = (_verb(base) for base in draft.one_of(_LATER))
    shared = [n for n in lex.nouns_for(first.objects) if n.fits(second.objects) and not n.mass]
    noun = draft.one_of(shared)
    who = _known_person(draft)
    draft.note(first, noun)
    draft.note(second, noun)
    thing = noun_phrase(draft, noun, "the" if draft.chance(0.4) else "a", draft.chance(0.2))
    left = of_verb(who, first, "past", parts=(object_part(thing),))
    right = of_verb(_back_to(who), second, "past", True, (Part("object", "it", "그것을"),))
    english = f"{english_statement(left)}, but {english_statement(right)}"
    return english, f"{korean_linked(left, _but, 'main')} {korean_sentence(right, draft.style, mark='none')}", "."
