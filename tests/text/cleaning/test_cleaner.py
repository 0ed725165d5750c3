"""Each step of cleaning does what its help line says, to both sides, and is counted."""

import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_pass_cleaning import clean
from rows import each_row

from tolka.errors import ConfigError
from tolka.text.cleaning.cleaner import MarkSet, Tally, comparison_form, held_out_marks
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import Direction
from tolka.text.pairs import Pair
from tolka.text.scripts import letters_of, plain_code

EN_DE = Direction("en", "de")


def cleaned(
    rows: list[tuple[str, str]], direction: Direction = EN_DE, **options: Any
) -> tuple[list[tuple[str, str]], Tally]:
    tally, rejected = Tally(), list[tuple[Pair, str]]()
    pairs = [Pair(*row) for row in rows]
    kept = list(clean(pairs, CleaningConfig(**options), direction, tally, rejected.append))
    assert tally.total == len(rows)
    assert tally.kept == len(kept)
    assert Counter(reason for _, reason in rejected) == tally.dropped
    return [(pair.source, pair.target) for pair in kept], tally


GOOD = ("A good sentence.", "Ein guter Satz.")


@each_row(
    ("options", "row", "reason"),
    [
        ({}, ("", "b"), "blank source"),
        ({}, ("a", " \t"), "blank target"),
        ({}, (" ", ""), "blank on both sides"),
        ({"control": "drop"}, ("a\u200bb", "c"), "control characters"),
        ({"control": "strip"}, ("\u200b", "c"), "blank source"),
        ({"markup": "drop"}, ("a <b>c</b>", "d"), "markup"),
        ({"markup": "drop"}, ("a", "b&nbsp;c"), "markup"),
        ({"markup": "strip"}, ("<br/>", "c"), "blank source"),
        ({"max_characters": 16}, ("a", "b" * 17), "over 16 characters"),
        ({"max_ratio": 3.0}, ("a" * 60, "b" * 13), "one side over 3 times as long"),
        ({"copies": True}, ("Berlin", "BERLIN"), "source copied"),
        ({"min_letters": 0.5}, ("12 3, a", "Ein guter Satz."), "few letters"),
        ({"numbers": True}, ("In 1,999 of 20", "In 1999 von 21"), "numbers that differ"),
        ({"numbers": True}, ("3 times 3", "3 mal"), "numbers that differ"),
        ({"script": True}, ("A good one.", "Хороший."), "target in another script"),
        ({"script": True}, ("Хороший.", "Gut."), "source in another script"),
        ({"duplicates": "exact"}, GOOD, "duplicate"),
        ({"duplicates": "near"}, ("a good SENTENCE", "Ein guter Satz!"), "near duplicate"),
    ],
)
def test_what_each_step_drops(options: dict[str, Any], row: tuple[str, str], reason: str) -> None:
    kept, tally = cleaned([GOOD, row], **options)
    assert (kept, tally.dropped) == ([GOOD], {reason: 1})
    if reason.startswith("blank"):
        return
    kept, tally = cleaned([GOOD, row], max_characters=0)
    assert (kept, tally.dropped) == ([GOOD, row], {})


@each_row(
    ("options", "row"),
    [
        ({"control": "drop"}, ("می\u200cخواهم", "d\u200de")),
        ({"control": "drop"}, ("אב \u200f(ג)", "a\tb")),
        ({"numbers": True}, ("10,000.5 of 1 cat in 2020 300", "10 000,5\xa0€, 1 chat, 2020 300")),
        ({"markup": "drop"}, ("a < b > c & d", "AT&T; 3<4")),
        ({"max_characters": 16}, ("a" * 16, "b")),
        ({"max_ratio": 3.0}, ("OK", "In Ordnung, gerne")),
        ({"copies": True}, ("Berlin", "Berlin!")),
        ({"min_letters": 0.5}, ("ab 1 2", "나는")),
        ({"numbers": True}, ("1,000.5 on ٣", "3 und 1.000,5")),
        ({"script": True}, ("OK.", "123 !")),
        ({"duplicates": "exact"}, ("A good sentence.", "Ein guter Satz")),
        ({"duplicates": "near"}, ("A good sentence", "Ein anderer Satz")),
        ({"duplicates": "near"}, ("...", "!")),
    ],
)
def test_what_each_step_keeps(options: dict[str, Any], row: tuple[str, str]) -> None:
    kept, tally = cleaned([GOOD, row], **options)
    assert (kept, tally.changed) == ([GOOD, row], {})


def test_what_is_taken_out_and_counted() -> None:
    row = ("a\u200b b\u2028c\x07", "<p>d&amp;e &#233;<br/>f</p>")
    kept, tally = cleaned([GOOD, row], control="strip", markup="strip")
    assert kept == [GOOD, ("a b c", "d&e é f")]
    assert tally.changed == {"characters rewritten": 1, "without markup": 1}
    assert tally.summary() == "2 pairs, 2 kept; changed: 1 characters rewritten, 1 without markup"
    assert Tally.of(tally.as_dict()) == tally


def test_a_reader_s_flaw_comes_first() -> None:
    tally = Tally()
    assert not list(clean([Pair("a", "b", "fuzzy translation")], CleaningConfig(), Direction("en", "de"), tally))
    assert tally.summary() == "1 pair, 0 kept, 1 left out: 1 fuzzy translation"


@each_row(
    ("direction", "row", "is_exchanged"),
    [
        (("en", "ru"), ("Хороший день.", "A good day."), True),
        (("en", "ko"), ("안녕하세요 John.", "Hello, John."), True),
        (("en", "ru"), ("A good day.", "Хороший день."), False),
        (("en", "ru"), ("Хороший день.", "Хороший."), False),
        (("en", "ru"), ("Хороший день.", "12:30"), False),
        (("en", "de"), ("Ein guter Tag.", "A good day."), False),  # which only their languages tell
    ],
)
def test_swapped_sides_in_part_of_a_text_are_exchanged(
    direction: tuple[str, str], row: tuple[str, str], is_exchanged: bool
) -> None:
    kept, tally = cleaned([row], Direction(*direction), script=True)
    assert (row[::-1] in kept) == is_exchanged
    assert tally.changed == ({"sides exchanged": 1} if is_exchanged else {})
    assert ("; changed: 1 sides exchanged" in tally.summary()) == is_exchanged


def test_other_languages() -> None:
    pytest.importorskip("py3langid")
    english, german = "This is a sentence about nothing in particular.", "Das ist ein Satz über nichts Besonderes."
    rows = [(english, german), (german, german), (english, english), ("Oui.", "Ja."), (german, english)]
    kept, tally = cleaned(rows, language=True)
    assert kept == [(english, german), ("Oui.", "Ja."), (english, german)]
    assert tally.changed == {"sides exchanged": 1}
    assert tally.dropped == {"source in another language": 1, "target in another language": 1}
    assert len(cleaned([(german, english)], Direction("xa", "qaa"), language=True)[0]) == 1


def test_without_py3langid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "py3langid.langid", None)
    with pytest.raises(ConfigError, match=r"pip install 'tolka\[langid\]'"):
        cleaned([GOOD], language=True)


# Words that differ in nothing but combining marks (vowel signs, tones, points, accents without a composed letter).
WORDS_THAT_DIFFER_IN_MARKS = {
    "Devanagari": ("दिन", "दीन"),  # day, poor
    "Bengali": ("দিন", "দীন"),  # day, poor
    "Thai": ("ดี", "ดู"),  # good, look
    "Lao": ("ດີ", "ດູ"),  # good, season
    "Khmer": ("គូ", "គោ"),  # pair, ox
    "Burmese": ("စား", "စီး"),  # eat, ride
    "Tamil": ("கல்", "கால்"),  # stone, leg
    "Telugu": ("పాట", "పూట"),  # song, half a day
    "Sinhala": ("ගල", "ගාල"),  # stone, pen
    "Tibetan": ("མི", "མེ"),  # man, fire
    "Arabic": ("عِلْم", "عَلَم"),  # knowledge, flag
    "Hebrew": ("סֵפֶר", "סָפַר"),  # book, he counted
    "Latin": ("ọkọ̀", "ọkọ́"),  # Yoruba: vehicle, hoe
}


@each_row(("one", "other"), WORDS_THAT_DIFFER_IN_MARKS.values(), ids=list(WORDS_THAT_DIFFER_IN_MARKS))
def test_combining_marks_belong_to_the_word(one: str, other: str) -> None:
    rows = [(one, "a"), (other, "a"), ("b", one), ("b", other)]
    assert cleaned(rows, duplicates="near")[0] == rows
    assert cleaned([(one, "a"), (f"«{one}»! ", "A.")], duplicates="near")[0] == [(one, "a")]
    config = CleaningConfig(leaks="source")
    marks = held_out_marks(config, [Pair(one, "a")])
    kept = clean([Pair(f"{one}.", "a"), Pair(other, "a")], config, Direction("", ""), Tally(), held_out=marks)
    assert list(kept) == [Pair(other, "a")]
    assert comparison_form(one) == unicodedata.normalize("NFC", one)


@each_row(
    ("text", "expected"),
    [
        (
            "I ❤\ufe0f it, 1\ufe0f\u20e3 #\ufe0f\u20e3",
            "iit1\u20e3",
        ),  # variation selectors, a key cap's mark on # and on 1
        ("e\u0301 \u0301é", "éé"),  # composed; a mark on a blank is no word's
        ("می\u200cخواهم", "میخواهم"),
        ("র\u200d্যাব", "র্যাব"),  # a joiner inside a cluster takes no vowel sign with it
        ("İSTANBUL GİDİŞ", "istanbulgidiş"),
        ("snake_case—No. 5", "snakecaseno5"),
        ("…!", "…!"),
    ],
)
def test_what_is_left_to_compare(text: str, expected: str) -> None:
    assert comparison_form(text) == expected


@pytest.mark.parametrize("text", ["ที่นี่", "दिन", "ດີ", "e\u0323\u0301"])
def test_marks_are_no_reason_to_find_few_letters(text: str) -> None:
    assert cleaned([(text, text + "!")], min_letters=0.5)[0] == [(text, text + "!")]
    assert cleaned([("12 3\u0301, a", "b")], min_letters=0.5)[1].dropped == {"few letters": 1}


@given(st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=8))
def test_marks_are_new_once(batches: list[list[int]]) -> None:
    seen, known = MarkSet(), set()
    for batch in batches:
        expected = [not (mark in known or known.add(mark)) for mark in batch]  # type: ignore[func-returns-value]
        assert seen.add(np.array(batch, dtype=np.uint64)).tolist() == expected


def test_duplicates_across_chunks() -> None:
    rows = [(f"a{n % 15_000}", "b") for n in range(40_000)]
    kept, tally = cleaned(rows, duplicates="exact")
    assert kept == rows[:15_000]
    assert tally.dropped == {"duplicate": 25_000}


def test_scripts() -> None:
    assert [plain_code(code) for code in ("eng", "de-AT", "XA")] == ["en", "de", "xa"]
    for language, inside, outside in (
        ("ko", "한漢", "aか"),
        ("ja", "かカ漢ーゝ々", "한"),
        ("sr", "бa", "한"),
        ("zh-TW", "漢", "б"),
    ):
        letters = letters_of(language)
        assert all(letters.match(letter) for letter in inside)
        assert not any(letters.match(letter) for letter in outside)
    assert letters_of("xa") is None


@each_row(
    ("options", "complaint"),
    [
        ({"control": "maybe"}, "cleaning.control"),
        ({"duplicates": "yes"}, "cleaning.duplicates"),
        ({"max_ratio": 0.5}, "must be at least 1"),
        ({"max_characters": -1}, "cleaning.max_characters"),
        ({"min_letters": 1.0}, "cleaning.min_letters"),
    ],
)
def test_bad_options(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        CleaningConfig(**options)


@each_row("reference", ["&#10;", "&NewLine;", "&#9;", "&#13;", "&#x2028;"])
def test_stripped_references_leave_no_line_break(reference: str) -> None:
    (kept,) = clean([Pair(f"a{reference}b", "c")], CleaningConfig(markup="strip"), Direction("en", "de"), Tally())
    assert kept == Pair("a b", "c")


@each_row(
    ("options", "held_out", "training"),
    [
        ({"markup": "strip"}, ("Press <b>OK</b>", "Drücken Sie <b>OK</b>"), ("Press OK", "Drücken Sie OK")),
        ({"markup": "strip"}, ("Press OK", "Drücken Sie OK"), ("Press <i>OK</i>", "Drücken Sie OK<br/>")),
        ({"markup": "strip"}, ("Salt &amp; pepper", "Salz &amp; Pfeffer"), ("Salt & pepper", "Salz & Pfeffer")),
        ({"markup": "strip", "control": "strip"}, ("A&nbsp;cat\u200b", "Eine Katze"), ("A cat", "Eine\x07 Katze")),
    ],
)
@each_row("leaks", ["pair", "source"])
def test_held_out_text_is_compared_after_the_same_changes(
    options: dict[str, Any], held_out: tuple[str, str], training: tuple[str, str], leaks: str
) -> None:
    config, tally = CleaningConfig(leaks=leaks, **options), Tally()
    marks = held_out_marks(config, [Pair(*held_out)])
    kept = clean([Pair(*GOOD), Pair(*training)], config, Direction("en", "de"), tally, held_out=marks)
    assert list(kept) == [Pair(*GOOD)]
    assert tally.dropped == {f"held-out {leaks}": 1}
