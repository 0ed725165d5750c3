"""search.glossary and search.banned through mt-translate."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
CUT = "reached the length limit"  # the model is hardly trained, so that few translations end
LINES = b"ferry kettle pebble .\nwalnut .\n\nvelvet copper orchid saddle .\n"


def notes(outcome: Any) -> list[str]:
    """The messages, except that translations may be cut, what to check, and that the model is useless."""
    others = (CUT, "to check: ", "by the verdict of its training")
    return [line for line in outcome.err.splitlines() if not any(each in line for each in others)]


@pytest.fixture
def terms(tmp_path: Path) -> Path:
    """A file name with letters beyond ASCII and a bracket, as Hydra would not take it unquoted."""
    path = tmp_path / "Begriffe(é).tsv"
    path.write_text("# terms\nkettle\tXyzzy\nVelvet copper\tPlugh plover\n", encoding="utf-8")
    return path


def test_terms_are_in_the_translations(command: Command, trained: Path, terms: Path) -> None:
    without = command("mt-translate", trained, stdin=LINES).out.split("\n")
    outcome = command("mt-translate", trained, f"search.glossary={terms}", stdin=LINES)
    assert (outcome.code, notes(outcome)) == (0, [])
    lines = outcome.out.split("\n")
    assert "Xyzzy" in lines[0]
    assert "Plugh plover" in lines[3]
    assert lines[1:3] == without[1:3]


def test_what_is_missing_and_what_slips_through_is_reported(command: Command, trained: Path, terms: Path) -> None:
    short = ["search.max_length_factor=0", "search.max_length_extra=1", "output.format=jsonl"]
    outcome = command("mt-translate", trained, f"search.glossary={terms}", *short, stdin=LINES)
    assert notes(outcome) == ["note: 2 of 4 lines lack a translation that the glossary (search.glossary) has for them"]
    flags = [json.loads(line)["flags"] for line in outcome.out.splitlines()]
    assert ["missing_term" in each for each in flags] == [True, False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("search", ["beam", "greedy", "diverse"])
def test_banned_phrases_are_not(command: Command, trained: Path, tmp_path: Path, search: str) -> None:
    before = command("mt-translate", trained, f"search={search}", stdin=LINES).out
    word = before.split()[0]
    (tmp_path / "banned.txt").write_text(f"{word}\nkettle\n", encoding="utf-8")
    settings = [f"search={search}", f"search.banned={tmp_path / 'banned.txt'}"]
    outcome = command("mt-translate", trained, *settings, stdin=LINES)
    assert outcome.code == 0
    assert word not in outcome.out.split()
    assert notes(outcome) == []
    (tmp_path / "prefix").write_text("a kettle .\n\n\n\n", encoding="utf-8")
    forced = command("mt-translate", trained, *settings, f"search.prefix={tmp_path / 'prefix'}", stdin=LINES)
    assert forced.out.startswith("a kettle .")
    assert notes(forced) == ["note: 1 of 4 lines contain a banned phrase (search.banned)"]


@pytest.mark.parametrize(
    ("settings", "code", "complaint"),
    [
        (["search.glossary={}"], 1, ":2: no tab; a line is: source TAB target"),
        (["search.banned=nowhere.txt"], 1, "nowhere.txt: there is no such file"),
        (["search=greedy", "search.glossary={}"], 2, "needs beam search: set search=beam"),
    ],
)
def test_files_that_cannot_be_used(
    command: Command, trained: Path, tmp_path: Path, settings: list[str], code: int, complaint: str
) -> None:
    path = tmp_path / "bad.tsv"
    path.write_text("a\tb\nno tab\n")
    outcome = command("mt-translate", trained, *(each.format(path) for each in settings), stdin=LINES)
    assert outcome.code == code
    assert complaint in outcome.error
    assert outcome.out == ""


def test_a_job_is_not_resumed_with_another_glossary(
    command: Command, trained: Path, terms: Path, tmp_path: Path
) -> None:
    arguments = [trained, "-o", tmp_path / "out", "resume=true", "decoding.window=2", f"search.glossary={terms}"]
    assert command("mt-translate", *arguments, stdin=b"walnut .\nwalnut .\n\xff\n").code == 1
    terms.write_text("kettle\tXyzzy\n", encoding="utf-8")
    outcome = command("mt-translate", *arguments, stdin=LINES)
    assert outcome.code == 1
    assert "the file search.glossary" in outcome.error
