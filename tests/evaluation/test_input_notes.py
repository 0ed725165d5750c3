"""Notes on texts to score: each kind of mistake is noted, and plain text is not."""

import json
import random
import unicodedata

import pytest
from rows import each_row

from tolka.evaluation.input_notes import (
    as_text,
    blank_note,
    count_error,
    equal_note,
    language_note,
    shift_note,
    spelling_note,
    text_notes,
    unnamed_language_note,
)
from tolka.metrics.options import MetricsConfig

PLAIN = ["Tom geht nicht, wenn du nicht willst.", "Wo ist der Bahnhof?", "Sie sagte: „Ja.“", "Er wartet."] * 10


def notes(hypotheses: list[str], references: list[str] = PLAIN) -> list[str]:
    return list(text_notes(("out.de", hypotheses), ("test.de", references)))


@each_row(
    ("old", "new", "expected"),
    [
        (".", " .", "20 lines of out.de end in a tokenised period (' .')"),
        (" ", " ▁", "40 lines of out.de contain subword tokens"),
        ("nicht", "ni@@ cht", "10 lines of out.de contain subword tokens"),
        ("„", "&quot;", "10 lines of out.de contain escapes such as &quot;"),
        ("„", "&bdquo;", "10 lines of out.de contain escapes such as &quot;"),
        ("„", "&#34;", "10 lines of out.de contain escapes such as &quot;"),
        ("Er", "3 ||| Er", "10 lines of out.de are rows of an n-best list"),
        ("Er", "-1.5\tEr", "10 lines of out.de contain a tab"),
    ],
)
def test_what_is_no_plain_text_is_noted_once(old: str, new: str, expected: str) -> None:
    changed = [line.replace(old, new) for line in PLAIN]
    (note,) = notes(changed)
    assert note.startswith(expected)
    (swapped,) = notes(PLAIN, changed)  # in the references as well
    assert swapped.startswith(expected.replace("out.de", "test.de"))


def test_json_is_noted_or_read() -> None:
    lines = [json.dumps({"source": "x", "hypotheses": [{"text": text}, {"text": "other"}]}) for text in PLAIN]
    assert as_text(("a", lines))[0] == ("a", PLAIN)
    other = [json.dumps({"translation": text}) for text in PLAIN]
    numbers, halves = '{"hypotheses": [{"text": 5}]}', '{"hypotheses": [{"text": "\\ud800"}]}'
    for line in ("Er wartet.", "", "[" * 10**5, other[0], numbers, halves):
        assert as_text(("a", [*lines, line])) == (("a", [*lines, line]), "")
    assert notes(other) == ["40 lines of out.de are JSON: give the text alone"]


def test_sacrebleu_s_count_of_tokenised_lines() -> None:
    """It warns from 100 lines that end in ' .' on, however long the text is; here a tenth of a short text will do."""
    assert notes(["Er wartet ."] * 3 + PLAIN[3:]) == []
    assert len(notes(["Er wartet ."] * 4 + PLAIN[4:])) == 1
    assert notes(["Er wartet ."] * 99 + ["Er wartet."] * 9901, ["Er wartet."] * 10000) == []
    assert len(notes(["Er wartet ."] * 100 + ["Er wartet."] * 9900, ["Er wartet."] * 10000)) == 1


def test_markup_that_both_texts_have_is_no_mistake() -> None:
    assert notes(["Suchen &amp; Ersetzen"] * 40, ["Suchen &amp; ersetzen"] * 40) == []
    assert notes(PLAIN) == []


def test_texts_that_are_the_same() -> None:
    given, other = ("out.de", [*PLAIN, ""]), ("test.de", [*PLAIN[:-2], "Anders.", "Er wartet. ", ""])
    assert equal_note(given, other, 0.95) == "39 of 41 lines of out.de are those of test.de: is it the right file?"
    assert equal_note(given, other, 0.98) == ""
    assert equal_note(("a", [""]), ("b", [""]), 0.5) == ""


def test_blank_lines_are_counted_for_each_text() -> None:
    note = blank_note([("a", ["x", " ", ""]), ("b", ["x", "y", "z"]), ("c", ["", "y", "z"])])
    assert note.startswith("blank: 2 of 3 lines of a, 1 of 3 lines of c; they are scored as all others, as sacreBLEU")
    assert blank_note([("a", ["x"])]) == ""


def test_a_lost_line_is_noted_wherever_it_was() -> None:
    texts = [f"{'ab' * (n % 5)} {'cd' * (n % 7)} line {n * n}" for n in range(60)]
    lost, added = [*texts[:20], *texts[21:], "end"], ["beginning", *texts[:-1]]
    assert "fit b one line later" in shift_note(("a", lost), ("b", texts))
    assert "fit b one line earlier" in shift_note(("a", added), ("b", texts))
    for sound in (texts, ["same"] * 60, texts[::-1]):
        assert shift_note(("a", sound), ("b", texts)) == ""
    assert shift_note(("a", lost[-9:]), ("b", texts[-9:])) == ""


def test_an_n_best_list_has_several_lines_for_each() -> None:
    assert str(count_error(("a", ["x"] * 10), ("b", ["x"] * 2))).endswith(
        "line by line (is it an n-best list with 5 of each? one of each can be scored)"
    )
    for lines in (9, 1):
        assert str(count_error(("a", ["x"] * lines), ("b", ["x"] * 2))).endswith("scores compare line by line")


@each_row(
    ("text", "language", "noted"),
    [
        ("Привет, как дела?", "de", True),
        ("나는 학교에 간다.", "en", True),
        ("나는 학교에 간다.", "ko", False),
        ("今天天气很好", "zho_Hans", False),
        ("Hello there", "ja", True),
        ("Hello there", "xb", False),
        ("12, 13 → 14!", "ko", False),
        ("", "en", False),
    ],
)
def test_a_text_in_another_script(text: str, language: str, noted: bool) -> None:
    assert bool(language_note(("test.xx", [text]), language)) == noted


def test_a_text_in_another_language_of_the_same_script() -> None:
    pytest.importorskip("py3langid")
    assert language_note(("test.de", PLAIN), "de") == ""
    assert language_note(("test.de", PLAIN), "en").startswith("test.de looks like 'de', not 'en'")


@each_row(
    ("text", "language"),
    [
        ("图书馆", "zh"),
        ("図書館で本を読む", "ja"),
        ("나는 간다", "ko"),
        ("ฉันไป", "th"),
        ("我用Linux系统", "zh"),
        ("Er geht.", ""),
    ],
)
def test_a_language_that_was_not_named_is_asked_for(text: str, language: str) -> None:
    note = unnamed_language_note(("test.xx", [text]))
    assert (f"language={language}" in note) if language else note == ""


def spelling(hypotheses: list[str], references: list[str], language: str) -> str:
    return spelling_note(("out", hypotheses), [("test", references)], MetricsConfig(), language)


@each_row(
    ("language", "hypothesis", "reference", "name"),
    [
        ("ro", "Ştiinţa şi ţara noastră", "Știința și țara noastră", "ş, ţ for ș, ț"),
        ("", "Ştiinţa şi ţara noastră", "Știința și țara noastră", "ş, ţ for ș, ț"),
        ("fa", "او كتابي مي خواند", "او کتابی می\u200cخواند", "ي, ك for ی, ک"),
        ("de", "er sagte „ja“ und ging", 'er sagte "ja" und ging', "quotation marks"),
        ("de", "das haus ist rot", "Das Haus ist rot", "capitals"),
        ("zh", "今天天气很好,我们去公园.", "今天天气很好，我们去公园。", "half-width marks"),
        ("ar", "في ٣ كتب و ١٢ قلم", "في 3 كتب و 12 قلم", "digits of another script"),
        ("he", "שָׁלוֹם רַב לְכֻלָּם הַיּוֹם", "שלום רב לכלם היום", "vowel marks"),
        ("vi", "hoà bình và thuỷ lợi", "hòa bình và thủy lợi", "hoà for hòa"),
        ("ru", "ещё её зелёный чёрный", "еще ее зеленый черный", "ё for е"),
        ("ko", unicodedata.normalize("NFD", "나는 너를 사랑한다 정말"), "나는 너를 사랑한다 정말", "accents apart"),
        ("fr", unicodedata.normalize("NFD", "été à côté là"), "été à côté là", "accents apart from their letters"),
    ],
)
def test_the_same_text_in_another_spelling_is_noted(language: str, hypothesis: str, reference: str, name: str) -> None:
    for one, other in ((hypothesis, reference), (reference, hypothesis)):
        note = spelling([one] * 10, [other] * 10, language)
        assert note.startswith(f"out and test are written differently ({name}"), note
        assert "of 10 lines): with these made equal, BLEU is 100.0 and not " in note
    assert spelling([hypothesis] * 10, [hypothesis] * 10, language) == ""


def test_translations_that_are_only_worse_have_no_note_on_their_spelling() -> None:
    draw = random.Random(3)
    worse = [" ".join(word for word in line.split() if draw.random() < 0.6) or line for line in PLAIN]
    some_small = [line.lower() if number % 5 == 0 else line for number, line in enumerate(PLAIN)]
    for system in (worse, some_small, PLAIN, PLAIN[1:] + PLAIN[:1]):
        assert spelling(system, PLAIN, "de") == spelling(system, PLAIN, "") == ""
