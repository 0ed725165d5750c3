"""English word forms: plurals, verb forms, articles and verb groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Agreement = Literal["first", "singular", "plural"]
Mode = Literal["present", "past", "future", "progressive", "past progressive", "can", "must", "want"]

_IRREGULAR_PLURALS = {
    "child": "children", "man": "men", "woman": "women", "mouse": "mice", "wolf": "wolves", "knife": "knives",
    "potato": "potatoes", "tomato": "tomatoes",
}  # fmt: skip
_BE_PRESENT: dict[Agreement, str] = {"first": "am", "singular": "is", "plural": "are"}
_BE_PAST: dict[Agreement, str] = {"first": "was", "singular": "was", "plural": "were"}
_CONSONANT_SOUND = ("university", "useful")


@dataclass(frozen=True, slots=True)
class VerbForms:
    """The forms of one English verb; ``particle`` follows every form ("listen" + "to")."""

    base: str
    past: str
    gerund: str
    particle: str = ""

    @property
    def third(self) -> str:
        """The third person singular present."""
        return with_s(self.base)


BE = VerbForms("be", "was", "being")


def with_s(word: str) -> str:
    """Add the ending of plurals and of the third person: -s, -es, -ies."""
    if word == "go":
        return "goes"
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def plural(noun: str) -> str:
    """Return the plural of a countable noun."""
    return _IRREGULAR_PLURALS.get(noun) or with_s(noun)


def regular_past(verb: str) -> str:
    """Return the past of a regular verb without consonant doubling."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + "ed"


def regular_gerund(verb: str) -> str:
    """Return the -ing form of a verb without consonant doubling."""
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def with_article(words: str) -> str:
    """Put "a" or "an" before a noun or an adjective and noun."""
    vowel_sound = words[0] in "aeiou" and not words.startswith(_CONSONANT_SOUND)
    return ("an " if vowel_sound else "a ") + words


def capitalized(text: str) -> str:
    """Raise the first letter only, so that names inside stay as they are."""
    return text[0].upper() + text[1:]


def _auxiliary(forms: VerbForms, agreement: Agreement, mode: Mode) -> tuple[str, str]:
    """Return (auxiliary, main verb), spelling out do/does/did where nothing else carries the tense."""
    if mode == "future":
        return "will", forms.base
    if mode in ("can", "must"):
        return mode, forms.base
    if mode == "progressive":
        return _BE_PRESENT[agreement], forms.gerund
    if mode == "past progressive":
        return _BE_PAST[agreement], forms.gerund
    if forms.base == "be":
        return (_BE_PAST if mode == "past" else _BE_PRESENT)[agreement], ""
    if mode == "past":
        return "did", forms.base
    does = "does" if agreement == "singular" else "do"
    return does, "want to " + forms.base if mode == "want" else forms.base


def verb_group(
    forms: VerbForms, agreement: Agreement, mode: Mode, *, negative: bool, question: bool
) -> tuple[str, str]:
    """Return (auxiliary, main): the subject stands between them in a question, before both otherwise."""
    auxiliary, main = _auxiliary(forms, agreement, mode)
    if auxiliary in ("do", "does", "did") and not negative and not question:
        if mode == "want":
            main = ("wants to " if agreement == "singular" else "want to ") + forms.base
        elif mode == "past":
            main = forms.past
        else:
            main = forms.third if agreement == "singular" else forms.base
        auxiliary = ""
    if forms.particle:
        main = f"{main} {forms.particle}"
    if negative and not question:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return auxiliary, main
