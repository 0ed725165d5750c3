"""Questions: yes or no, and the question words."""

from __future__ import annotations

from sample_corpus import korean as ko
from sample_corpus import lexicon as lex
from sample_corpus.clause import Part, Phrase, Wording, asked, english_statement, korean_sentence, of_verb
from sample_corpus.english import Mode, plural
from sample_corpus.phrases import Draft, action, human_verb, name_phrase, subject


def yes_no(draft: Draft) -> Wording:
    """A question without a question word."""
    return asked(draft.style, action(draft, _asker_subject(draft), human_verb(draft)))


def question_word(draft: Draft) -> Wording:
    """Who, what, where, when, why, how many."""
    kind = draft.weighted({"what": 22, "who": 18, "whom": 10, "where": 18, "when": 12, "why": 10, "many": 16})
    return {
        "what": _ask_what, "who": _ask_who, "whom": _ask_whom, "where": _ask_where, "when": _ask_when,
        "why": _ask_why, "many": _ask_how_many,
    }[kind](draft)  # fmt: skip


def _asker_subject(draft: Draft) -> Phrase:
    return subject(draft, ("you", "you", "he", "she", "they"), definite=True)


def _ask_what(draft: Draft) -> Wording:
    verb = draft.one_of([v for v in lex.verbs() if not {"person", "friend", "place", "inside"} & set(v.objects)])
    clause = action(draft, _asker_subject(draft), verb)
    return asked(draft.style, clause.without("object").with_parts(Part("object", "", "무엇을")), "what")


def _ask_who(draft: Draft) -> Wording:
    verb = human_verb(draft)
    clause = action(draft, Phrase("who", "누구", korean_subject="누가", definite=False), verb)
    return english_statement(clause), korean_sentence(clause, draft.style, question=True), "?"


def _ask_whom(draft: Draft) -> Wording:
    verb = draft.one_of([v for v in lex.verbs() if "friend" in v.objects and not {"film", "dish"} & set(v.objects)])
    clause = action(draft, _asker_subject(draft), verb)
    return asked(draft.style, clause.without("object").with_parts(Part("object", "", "누구를")), "who")


def _ask_where(draft: Draft) -> Wording:
    if draft.chance(0.4):
        verb = draft.one_of([v for v in lex.intransitives() if v.forms.base in ("go", "live", "arrive")])
        clause = action(draft, _asker_subject(draft), verb, extras=False)
        return asked(draft.style, clause.without("goal").with_parts(Part("goal", "", "어디에")), "where")
    verb = draft.one_of([v for v in lex.verbs() + lex.intransitives() if "place" in v.flags])
    clause = action(draft, _asker_subject(draft), verb).without("place").without("company")
    return asked(draft.style, clause.with_parts(Part("place", "", "어디에서")), "where")


def _ask_when(draft: Draft) -> Wording:
    mode: Mode = "past" if draft.chance(0.5) else "future"
    verb = draft.one_of([v for v in lex.verbs() + lex.intransitives() if "state" not in v.flags])
    clause = action(draft, _asker_subject(draft), verb, mode).without("time")
    return asked(draft.style, clause.with_parts(Part("time", "", "언제")), "when")


def _ask_why(draft: Draft) -> Wording:
    clause = action(draft, _asker_subject(draft), human_verb(draft))
    return asked(draft.style, clause.with_parts(Part("reason", "", "왜")), "why")


def _ask_how_many(draft: Draft) -> Wording:
    countable = [n for n in lex.nouns() if n.counter]
    verbs = [v for v in lex.verbs() if "state" not in v.flags and any(n.fits(v.objects) for n in countable)]
    verbs = [v for v in verbs if v.forms.base != "listen"]
    verb = draft.one_of(verbs)
    noun = draft.one_of([noun for noun in countable if noun.fits(verb.objects)])
    draft.note(verb, noun)
    mode: Mode = "past" if draft.chance(0.6) else "future"
    parts = [Part("object", "", f"{ko.accusative(noun.korean)} 몇 {noun.counter}")]
    if "recipient" in verb.flags:
        receiver = name_phrase(draft)
        parts.append(Part("recipient", "to " + receiver.english, receiver.korean + "에게"))
    clause = of_verb(_asker_subject(draft), verb, mode, parts=tuple(parts))
    return asked(draft.style, clause, "how many " + plural(noun.english))
