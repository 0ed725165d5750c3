"""Advice about the faults of a text: what is noted, what is too rare to act on, and what the settings do already."""

from dataclasses import asdict
from typing import Any

import pytest
from rows import each_row

from tolka.report.data_check import (
    advice,
    cure_of,
    duration,
    health_report,
    in_validation_set,
    leak_cure,
    shift_words,
)
from tolka.text.cleaning.steps import CleaningConfig

NO_CLEANING = asdict(CleaningConfig())


def finding(what: str, count: int, **other: Any) -> dict[str, Any]:
    return {"what": what, "count": count, "looked_at": 1000, "examples": [(7, "a\tb", "x" * 80)], **other}


def checkup(*findings: dict[str, Any], **other: Any) -> dict[str, Any]:
    side = {"characters": 9, "words": 3, "lengths": [1, 2, 3, 4, 5], "languages": {}}
    part = {"name": "train", "pairs": 1000, "source": side, "target": side, "findings": list(findings), "shift": None}
    found: dict[str, Any] = {"training": [part], "kept": None, "leaks": {}, "pace": None, "unfit": "no text"}
    return {
        **found,
        "chosen": [],
        "parent": "",
        "overlaps": [],
        "wrong_sides": {},
        "unlike": [],
        "varieties": [],
        "cleaning": NO_CLEANING,
        **other,
    }


@each_row(
    ("what", "count", "cure"),
    [
        ("markup", 11, "cleaning.markup=strip, or drop"),
        ("markup", 10, ""),
        (
            "few letters",
            501,
            "most pairs have few letters: is it the right file, or the right column (corpus.columns)?",
        ),
        ("source not UTF-8, others are", 1, "in the source, convert those lines alone: iconv -f latin1"),
        ("source not UTF-8", 1, "convert the source: iconv -f latin1"),
        ("something new", 1000, ""),
    ],
)
def test_the_cure_depends_on_the_share(what: str, count: int, cure: str) -> None:
    found = cure_of(finding(what, count, conversion="iconv -f latin1"), NO_CLEANING)
    assert found.startswith(cure) if cure else not found


def test_a_step_that_is_switched_on_is_not_advised() -> None:
    assert cure_of(finding("markup", 500), {**NO_CLEANING, "markup": "strip"}) == ""


@pytest.mark.parametrize(
    ("what", "count", "leaks", "cure"),
    [
        ("test: source in the training text", 20, "keep", "cleaning.leaks=source, or its scores may be too good"),
        ("test: source in the training text", 20, "pair", "cleaning.leaks=source, or its scores may be too good"),
        ("test: whole pair in the training text", 20, "source", ""),
        ("test: whole pair in the training text", 1000, "source", "all of it stands in the training text"),
    ],
)
def test_leaks_are_cured_by_a_step_that_finds_them(what: str, count: int, leaks: str, cure: str) -> None:
    found = leak_cure(finding(what, count), {**NO_CLEANING, "leaks": leaks})
    assert found.startswith(cure) if cure else not found


def test_swapped_sides_explain_their_consequences() -> None:
    script = finding("another script than its language's", 300)
    swapped = checkup(script, wrong_sides={"train": "its sides are swapped"})
    assert advice(checkup(script)) == ["train: cleaning.script=true"]
    assert advice(swapped) == ["train: its sides are swapped"]


def test_advice_is_given_once() -> None:
    assert advice(checkup(*2 * [finding("markup", 100)])) == ["train: cleaning.markup=strip, or drop"]


@pytest.mark.parametrize(
    ("count", "sentence"), [(1000, "the test set a is the validation set"), (2, "a has 2 of its 1000 pairs in")]
)
def test_a_test_set_that_chooses_the_model(count: int, sentence: str) -> None:
    assert sentence in in_validation_set(finding("a: pairs of the validation set", count))


@pytest.mark.parametrize(
    ("lines", "where"), [(1, "the target has a line too many"), (-2, "the source has 2 lines too many"), (0, None)]
)
def test_a_shift_names_the_longer_side(lines: int, where: str | None) -> None:
    first, *second = shift_words({"first": 501, "last": 900, "lines": lines, "correlation": (0.9, 0.01)})
    assert first.startswith(
        "pairs 501 to 900 are not parallel: their lengths correlate by 0.01, those of the rest by 0.90"
    )
    assert len(second) == bool(where)
    assert (where or "") in "".join(second)


def test_blanks_and_what_is_invisible_have_their_codes() -> None:
    odd = finding("odd", 1, examples=[(1, "1\u00a0000\u3000km", "\u202eab\u200b می\u200cخواهم ﬁ")])
    (row,) = [line for line in health_report(checkup(odd), ("en", "fa")).splitlines() if line.startswith("odd")]
    assert row.endswith("1: 1<U+00A0>000<U+3000>km | <U+202E>ab<U+200B> می\u200cخواهم ﬁ")


def test_the_report_shows_an_example_in_one_line() -> None:
    report = health_report(checkup(finding("markup", 123)), ("en", "de"))
    [row] = [line for line in report.splitlines() if line.startswith("markup")]
    assert row.split(None, 3)[:3] == ["markup", "123", "12.30%"]
    assert row.endswith(f"7: a<U+0009>b | {'x' * 59}…")
    assert "this text cannot be trained on yet: no text" in report


def test_minutes_make_hours() -> None:
    assert (duration(65.0), duration(0.4)) == ("1 h 05 min", "0 h 00 min")


def test_little_text_is_told_of_a_model_to_begin_with() -> None:
    pace = {"tokens_per_second": 1.0, "updates": 1, "epochs": 1.0, "parameters": 1, "at_plateau": False, "minutes": 1.0}
    found = checkup(pace=pace, parent="hub:Helsinki-NLP/opus-mt-xa-xb")
    assert "run.init_from=hub:Helsinki-NLP/opus-mt-xa-xb" in " ".join(advice(found))
    assert "run.init_from" not in " ".join(advice({**found, "parent": ""}))
