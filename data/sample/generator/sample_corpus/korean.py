"""Korean word forms, computed from the letters (jamo) inside each syllable block.

A precomposed Hangul syllable is ``0xAC00 + (lead * 21 + vowel) * 28 + tail``, so particles and
endings need arithmetic rather than tables of finished forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["verb", "adjective", "exist", "copula", "past"]
Style = Literal["polite", "plain"]
Irregular = Literal["", "ㅂ", "ㄷ", "ㅅ", "ㅎ", "르"]

_FIRST_SYLLABLE = 0xAC00
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_TAILS = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
_BRIGHT_VOWELS = "ㅏㅑㅗ"
# What a stem-final vowel becomes when 아/어 melts into it; ㅟ and ㅢ keep a separate 어.
_MERGED_VOWEL = {
    "ㅏ": "ㅏ", "ㅓ": "ㅓ", "ㅕ": "ㅕ", "ㅐ": "ㅐ", "ㅔ": "ㅔ", "ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ",
}  # fmt: skip
_BRIGHTER_VOWEL = {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅔ"}


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb or adjective stem ready for an ending; ``stem`` may carry earlier words."""

    stem: str
    kind: Kind
    irregular: Irregular = ""


def split_syllable(syllable: str) -> tuple[int, str, str]:
    """Return (lead index, vowel letter, tail letter or "") of one Hangul syllable."""
    offset = ord(syllable) - _FIRST_SYLLABLE
    if not 0 <= offset < 11172:
        raise ValueError(f"not a Hangul syllable: {syllable!r}")
    lead, rest = divmod(offset, 21 * 28)
    vowel, tail = divmod(rest, 28)
    return lead, _VOWELS[vowel], _TAILS[tail].strip()


def join_syllable(lead: int, vowel: str, tail: str = "") -> str:
    """Build one Hangul syllable from its letters."""
    tail_index = _TAILS.index(tail) if tail else 0
    return chr(_FIRST_SYLLABLE + (lead * 21 + _VOWELS.index(vowel)) * 28 + tail_index)


def tail_of(word: str) -> str:
    """Return the final consonant letter of a word, or "" when it ends in a vowel."""
    return split_syllable(word[-1])[2]


def with_tail(word: str, tail: str) -> str:
    """Replace the final consonant of a word's last syllable."""
    lead, vowel, _ = split_syllable(word[-1])
    return word[:-1] + join_syllable(lead, vowel, tail)


def topic(word: str) -> str:
    """Attach 은/는."""
    return word + ("은" if tail_of(word) else "는")


def nominative(word: str) -> str:
    """Attach 이/가."""
    return word + ("이" if tail_of(word) else "가")


def accusative(word: str) -> str:
    """Attach 을/를."""
    return word + ("을" if tail_of(word) else "를")


def together(word: str) -> str:
    """Attach 과/와."""
    return word + ("과" if tail_of(word) else "와")


def directional(word: str) -> str:
    """Attach 으로/로; a final ㄹ counts as a vowel here."""
    return word + ("로" if tail_of(word) in ("", "ㄹ") else "으로")


def without_l(stem: str) -> str:
    """Drop a final ㄹ, as stems do before ㄴ, ㅂ and ㅅ."""
    return with_tail(stem, "") if tail_of(stem) == "ㄹ" else stem


def _harmonic(syllable: str) -> str:
    return "아" if split_syllable(syllable)[1] in _BRIGHT_VOWELS else "어"


def _irregular_infinitive(stem: str, irregular: Irregular) -> str:
    if irregular == "르":
        doubled = with_tail(stem[:-1], "ㄹ")
        return doubled + ("라" if _harmonic(doubled[-1]) == "아" else "러")
    if irregular == "ㅂ":
        # Only 돕다 and 곱다 keep the bright vowel in the modern standard.
        return with_tail(stem, "") + ("와" if stem[-1] in "돕곱" else "워")
    if irregular == "ㄷ":
        return with_tail(stem, "ㄹ") + _harmonic(stem[-1])
    if irregular == "ㅅ":
        return with_tail(stem, "") + _harmonic(stem[-1])
    lead, vowel, _ = split_syllable(stem[-1])
    return stem[:-1] + join_syllable(lead, _BRIGHTER_VOWEL[vowel])


def infinitive(predicate: Predicate) -> str:
    """Return the 아/어 form: 먹어, 가, 마셔, 해, 도와, 들어, 골라, 써."""
    stem = predicate.stem
    if predicate.kind == "copula":
        return stem + "어" if tail_of(stem[:-1]) else stem[:-1] + "여"
    if predicate.irregular:
        return _irregular_infinitive(stem, predicate.irregular)
    if stem.endswith("하"):
        return stem[:-1] + "해"
    lead, vowel, tail = split_syllable(stem[-1])
    if tail or vowel in "ㅟㅢ":
        return stem + _harmonic(stem[-1])
    if vowel == "ㅡ":
        before = stem[-2:-1].strip()
        bright = bool(before) and _harmonic(before) == "아"
        return stem[:-1] + join_syllable(lead, "ㅏ" if bright else "ㅓ")
    return stem[:-1] + join_syllable(lead, _MERGED_VOWEL[vowel])


def _linked(predicate: Predicate) -> str:
    """Return the stem as it stands before endings that begin with 으 after a consonant."""
    stem = predicate.stem
    if predicate.irregular == "ㅂ":
        return with_tail(stem, "") + "우"
    if predicate.irregular == "ㄷ":
        return with_tail(stem, "ㄹ") + "으"
    if predicate.irregular == "ㅅ":
        return with_tail(stem, "") + "으"
    if predicate.irregular == "ㅎ":
        return with_tail(stem, "")
    return without_l(stem) if tail_of(stem) in ("", "ㄹ") else stem + "으"


def past(predicate: Predicate) -> Predicate:
    """Return the past stem: 먹었-, 갔-, 했-, 의사였-."""
    return Predicate(with_tail(infinitive(predicate), "ㅆ"), "past")


def negated(predicate: Predicate) -> Predicate:
    """Return -지 않다; the result stays a verb or an adjective like its source."""
    kind: Kind = "verb" if predicate.kind == "verb" else "adjective"
    return Predicate(predicate.stem + "지 않", kind)


def progressive(predicate: Predicate) -> Predicate:
    """Return -고 있다."""
    return Predicate(predicate.stem + "고 있", "exist")


def future(predicate: Predicate) -> Predicate:
    """Return -(으)ㄹ 것이다."""
    return Predicate(prospective(predicate) + " 것이", "copula")


def ability(predicate: Predicate, negative: bool) -> Predicate:
    """Return -(으)ㄹ 수 있다 or -(으)ㄹ 수 없다."""
    return Predicate(prospective(predicate) + (" 수 없" if negative else " 수 있"), "exist")


def obligation(predicate: Predicate, negative: bool) -> Predicate:
    """Return -아야/어야 하다, or the prohibition -(으)면 안 되다."""
    if negative:
        return Predicate(conditional(predicate) + " 안 되", "verb")
    return Predicate(infinitive(predicate) + "야 하", "verb")


def wish(predicate: Predicate, own_feeling: bool) -> Predicate:
    """Return -고 싶다 for the speaker's (or an asked listener's) wish, else -고 싶어 하다."""
    if own_feeling:
        return Predicate(predicate.stem + "고 싶", "adjective")
    return Predicate(predicate.stem + "고 싶어 하", "verb")


def prospective(predicate: Predicate) -> str:
    """Return the -(으)ㄹ form: 읽을, 갈, 만들, 들을, 도울."""
    return with_tail(_linked(predicate), "ㄹ")


def adnominal(predicate: Predicate, tense: Literal["present", "past", "future"]) -> str:
    """Return the form that stands before a noun: 읽는, 읽은, 읽을; 추운; 재미있는."""
    if tense == "future":
        return prospective(predicate)
    if tense == "present" and predicate.kind in ("verb", "exist"):
        return without_l(predicate.stem) + "는"
    return with_tail(_linked(predicate), "ㄴ")


def conditional(predicate: Predicate) -> str:
    """Return the -(으)면 form; stems in ㄹ keep it and take no 으."""
    if tail_of(predicate.stem) == "ㄹ" and not predicate.irregular:
        return predicate.stem + "면"
    return _linked(predicate) + "면"


def finish(predicate: Predicate, style: Style, question: bool) -> str:
    """Attach the sentence-final ending of the polite (합니다) or plain (한다) style."""
    stem = predicate.stem
    if style == "polite":
        ending = "까" if question else "다"
        if tail_of(stem) in ("", "ㄹ"):
            return with_tail(without_l(stem), "ㅂ") + "니" + ending
        return stem + "습니" + ending
    if predicate.kind == "copula":
        # 의사다 but 학생이다; after 것 the full 것이다 is kept by the same rule.
        return (stem if tail_of(stem[:-1]) else stem[:-1]) + ("니" if question else "다")
    if question:
        return without_l(stem) + "니"
    if predicate.kind != "verb":
        return stem + "다"
    if tail_of(stem) in ("", "ㄹ"):
        return with_tail(without_l(stem), "ㄴ") + "다"
    return stem + "는다"


def command(predicate: Predicate, style: Style, negative: bool) -> str:
    """Return a request (열어 주십시오, 열지 마십시오) or a plain order (열어라, 열지 마라)."""
    if negative:
        return predicate.stem + ("지 마십시오" if style == "polite" else "지 마라")
    if style == "plain":
        return infinitive(predicate) + "라"
    if predicate.stem.endswith("주"):
        return predicate.stem + "십시오"
    return infinitive(predicate) + " 주십시오"
