"""The page about a text: every fault with its examples, drawn lengths; nothing is fetched, text stays text."""

from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tolka.report.data_check import write_check_page
from tolka.text.cleaning.steps import CleaningConfig

SIDES = ("source", "target")
SETTINGS = {
    "run": {"name": "mine"},
    "corpus": {"source": "en", "target": "ko"},
    "cleaning": {"markup": "keep"},
    "tokenizer": {},
    "batching": {},
}
PACE = {"tokens_per_second": 1234.5, "memory_bytes": 7e8, "updates": 4000, "epochs": 16.5, "minutes": 65.0}
CHOSEN = [{"key": "model.dropout", "value": 0.3, "reason": "the less <text>, the more"}]
KEPT = {"kept": 990, "dropped": {"duplicate": 10}, "changed": {"without markup": 3}}


class Reader(HTMLParser):
    """What a browser would make of it: text as it is seen, tags, addresses, bars."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.heights: list[float] = []
        self.titles: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.addresses += [str(given[key]) for key in ("src", "href") if key in given]
        if tag == "rect":
            self.heights.append(float(str(given["height"])))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title":
            self.titles.append(data)
        if "style" not in self.open:
            self.text += data


def side(counts: list[int], **direction: float) -> dict[str, Any]:
    histogram = {"starts": [10 * number for number in range(len(counts))], "counts": counts}
    return {
        "characters": 12345,
        "words": 2345,
        "lengths": [1, 2, 3, 4, 5678],
        "histogram": histogram,
        "languages": direction,
    }


def finding(what: str, count: int, *examples: tuple[int, str, str]) -> dict[str, Any]:
    return {"what": what, "count": count, "looked_at": 1000, "examples": list(examples)}


def checkup(*findings: dict[str, Any], **other: Any) -> dict[str, Any]:
    part = {
        "name": "train",
        "pairs": 1000,
        "source": side([500, 400, 100], en=1.0),
        "target": side([1000, 0, 0], ko=0.5, en=0.2, de=0.1, fr=0.1, sv=0.05, it=0.03, pt=0.02),
        "findings": list(findings),
        "shift": None,
    }
    pieces = {which: {"total": 77, "lengths": [1] * 5, "histogram": {"starts": [0], "counts": [5]}} for which in SIDES}
    pace = {**PACE, "parameters": 3_000_000, "at_plateau": False, "unlimited_minutes": 65.0}
    found = {"training": [part], "kept": KEPT, "leaks": {}, "pieces": pieces, "pace": pace, "unfit": ""}
    found |= {"chosen": [], "parent": "", "overlaps": [], "wrong_sides": {}, "unlike": [], "varieties": []}
    return {**found, "cleaning": asdict(CleaningConfig()), **other}


def written(folder: Path, found: dict[str, Any]) -> Reader:
    page = write_check_page(folder / "new" / "mine", SETTINGS, found)
    assert page == folder / "new" / "mine" / "check.html"
    read = Reader(page.read_text("utf-8"))
    assert not read.open
    assert read.addresses == []
    return read


def test_every_fault_with_its_examples(tmp_path: Path) -> None:
    faults = [
        finding("markup", 123, (7, "<b>a</b>", "<b>가</b>"), (8, "c", "d"), (9, "e", "f")),
        finding("few letters", 1, (1000, "1 2", "1 2")),
    ]
    leak = finding("test: source in the training text", 20, (3, "held & out", "뜻"))
    shift = {"first": 501, "last": 1000, "lines": 1, "correlation": (0.9, 0.01)}
    found = checkup(*faults, leaks={"valid": {"findings": []}, "test": {"findings": [leak]}})
    found["training"][0]["shift"] = shift
    page = written(tmp_path, found)
    for expected in (
        "mine: the text, checked",
        "markup 123 of 1,000, 12.30%",
        "→ cleaning.markup=strip",
        "train: cleaning.markup=strip",
        "<b>a</b>",
        "<b>가</b>",
        "few letters 1 of 1,000, 0.10%",
        "1,000",
        "test: source in the training text 20 of 1,000, 2.00%",
        "held & out",
        "test: cleaning.leaks=",
        "pairs 501 to 1000 are not parallel",
        "mend the alignment from pair 501 on",
        "without markup: 3",
        "1,234 target tokens/s",
        "1 h 05 min",
        "markup: keep",
    ):
        assert expected in page.text, expected
    assert page.text.count("cleaning.min_letters") == 0  # one of a thousand is no reason
    assert "script" not in page.tags


def test_bars_are_to_one_scale_and_named(tmp_path: Path) -> None:
    page = written(tmp_path, checkup())
    assert page.heights == [50, 40, 10, 100, 0, 0, 100, 100]
    assert page.titles[1:4] == [
        "0 to 9 characters: 500 lines",
        "10 to 19 characters: 400 lines",
        "20 and more characters: 100 lines",
    ]
    assert page.text.count("1,000 lines") == 3  # the highest bar of both sides, and its own name
    assert "2 to 4 characters, the middle one 3" in page.text
    assert "1, 5,678" in page.text
    assert "others" in page.text
    assert "5.00%" in page.text


def test_text_stays_text_and_what_is_hidden_is_seen(tmp_path: Path) -> None:
    evil = "</td><script>alert('x')</script> & \u202eabc\x00\u200b"
    long = "가" * 5000
    page = written(tmp_path, checkup(finding("odd", 2, (1, evil, long), (2, "wide\u3000blank", "no\u00a0break"))))
    assert "script" not in page.tags
    assert "</td><script>alert('x')</script> & " in page.text
    assert " & <U+202E>abc<U+0000><U+200B>" in page.text
    assert not {"\u202e", "\x00", "\u200b"} & set(page.text)
    assert page.text.count("가") == 239
    assert "가…" in page.text
    assert "wide<U+3000>blank" in page.text


def test_good_text_and_unfit_text(tmp_path: Path) -> None:
    large = checkup()
    large["training"][0]["pairs"] = 30_000
    good = written(tmp_path, large)
    assert ("Nothing." in good.text, "Nothing was found." in good.text, "does not leak" in good.text) == (True,) * 3
    bad = written(tmp_path, checkup(kept=None, pieces=None, pace=None, unfit="train.de:7: <bad>"))
    assert "This text cannot be trained on yet: train.de:7: <bad>" in bad.text
    assert "Nothing yet: see above." in bad.text
    assert "What training takes" not in bad.text


def test_settings_that_were_chosen_and_a_training_that_ends_by_itself(tmp_path: Path) -> None:
    pace = {**PACE, "parameters": 3_000_000, "at_plateau": True, "unlimited_minutes": 65.0}
    text = written(tmp_path, checkup(chosen=CHOSEN, pace=pace)).text
    assert "Settings chosen for this text" in text
    assert "the less <text>, the more" in text
    assert "at most 1 h 05 min without validations; it ends when they bring nothing better" in text
    ended = [*CHOSEN, {"key": "trainer.epochs", "value": 100, "reason": "at most"}]
    text = written(tmp_path / "again", checkup(chosen=ended, pace=pace)).text
    assert "about 0 h 22 min, as is usual for such a text, and at most 1 h 05 min without validations" in text
    assert "Settings chosen" not in written(tmp_path, checkup()).text


@pytest.mark.parametrize("name", ["", "<i>"])
def test_its_title(tmp_path: Path, name: str) -> None:
    page = write_check_page(tmp_path / "there", {**SETTINGS, "run": {"name": name}}, checkup())
    assert f"{name or 'there'}: the text, checked" in Reader(page.read_text("utf-8")).text


def test_a_kind_of_fault_in_several_files_counts_once(tmp_path: Path) -> None:
    found = checkup(finding("markup", 2), finding("few letters", 1))
    found["training"] = [{**part, "name": name} for part in found["training"] for name in ("one", "two", "three")]
    assert "2 kinds of fault" in written(tmp_path, found).text
