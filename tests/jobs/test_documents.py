"""Documents translated by the command: alone, in folders, resumed, with a memory, a glossary and a report."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tolka
from conftest import Command
from tolka.errors import DataError
from tolka.translation.request import Request
from tolka.translation.translator import Translator

QUICK = ["search.max_length_factor=0", "search.max_length_extra=4"]
PAGE = "<html><body><p>The ferry</p><p>A lantern</p><p>12</p><pre>code x</pre></body></html>\n"


@pytest.fixture
def upper(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A model that writes capitals; the texts that it was given."""
    given: list[str] = []
    real = Translator.translate

    def translate(self: Any, texts: list[str], request: Request, tick: Any) -> Any:
        given.extend(texts)
        results = real(self, texts, request, tick)
        return [
            replace(result, candidates=[replace(result.candidates[0], text=text.upper(), complete=True)])
            for text, result in zip(texts, results, strict=True)
        ]

    monkeypatch.setattr(Translator, "translate", translate)
    return given


def test_a_document_is_translated_and_reported(
    command: Command, trained: Path, tmp_path: Path, upper: list[str]
) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    report, out = tmp_path / "r.json", tmp_path / "b.html"
    done = command("mt-translate", trained, *QUICK, tmp_path / "a.html", "-o", out, "--json", report)
    assert out.read_text() == PAGE.replace("The ferry", "THE FERRY").replace("A lantern", "A LANTERN")
    assert done.err.splitlines()[0] == f"{out}: 4 texts: 2 translated, 2 left alone (without words 1, code 1)"
    [values] = json.loads(report.read_text())["documents"]
    assert values == {
        "input": str(tmp_path / "a.html"),
        "output": str(out),
        "translated": 2,
        "reused": 0,
        "left_alone": {"without words": 1, "code": 1},
        "check": [],
    }


def test_a_document_comes_from_standard_input_and_goes_to_standard_output(
    command: Command, trained: Path, upper: list[str]
) -> None:
    assert command("mt-translate", trained, *QUICK, "input.format=html", stdin=b"<p>ferry <b>a</b></p>").out == (
        "<p>FERRY <b>A</b></p>"
    )


def test_what_a_person_should_look_at_is_listed(
    command: Command, trained: Path, tmp_path: Path, upper: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A placeholder that the model changes is read by it as a number; if that is lost, too, it is put in its place."""
    (tmp_path / "a.html").write_text("<p>see {name} \n or %s</p>\n<p>twenty {name}</p>\n")
    real = Translator.translate

    def without_numbers(self: Any, texts: list[str], request: Request, tick: Any) -> Any:
        return real(self, [re.sub(r" \{name\}|(?<=twenty) 42", "", text) for text in texts], request, tick)

    monkeypatch.setattr(Translator, "translate", without_numbers)
    done = command("mt-translate", trained, *QUICK, tmp_path / "a.html", "--json", tmp_path / "r.json")
    assert done.out == "<p>SEE {name} OR %s</p>\n<p>TWENTY {name}</p>\n"
    [values] = json.loads((tmp_path / "r.json").read_text())["documents"]
    [row] = values["check"]
    assert (row["where"], row["source"], row["translation"]) == (
        f"{tmp_path}/a.html:3",
        "twenty {name}",
        "TWENTY",
    )
    assert "kept_text" in row["why"]
    assert f"{tmp_path}/r.json lists them" in done.err


def test_a_folder_is_translated_into_another_one(
    command: Command, trained: Path, tmp_path: Path, upper: list[str]
) -> None:
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "a.html").write_text("<p>ferry</p>")
    (site / "sub" / "b.html").write_text("<p>lantern</p>")
    (site / "sub" / "c.css").write_bytes(b"p { color: red }")
    done = command("mt-translate", trained, *QUICK, site, "-o", tmp_path / "out")
    assert {str(path.relative_to(tmp_path / "out")): path.read_text() for path in (tmp_path / "out").rglob("*.*")} == {
        "a.html": "<p>FERRY</p>",
        "sub/b.html": "<p>LANTERN</p>",
        "sub/c.css": "p { color: red }",
    }
    assert "note: 1 file of other kinds: copied as they are" in done.err


def test_an_interrupted_document_is_continued(
    command: Command, trained: Path, tmp_path: Path, upper: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tmp_path / "a.html", tmp_path / "b.html"
    path.write_text("".join(f"<p>word <b>{letter}</b></p>\n" for letter in "abcdef"))
    settings = [*QUICK, "decoding.window=2", path, "-o", out, "resume=true"]
    counted = Translator.translate

    def failing(self: Any, texts: list[str], request: Request, tick: Any) -> Any:
        if "word e" in texts:
            raise DataError("stopped")
        return counted(self, texts, request, tick)

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", failing)
        stopped = command("mt-translate", trained, *settings)
    assert (stopped.code, out.exists(), "is kept in" in stopped.err) == (1, False, True)
    upper.clear()
    resumed = command("mt-translate", trained, *settings, "--json", tmp_path / "r.json")
    assert upper == ["word e", "word f"]
    assert out.read_text() == "".join(f"<p>WORD <b>{each}</b></p>\n" for each in "ABCDEF")
    assert f"{out}: 6 texts: 6 translated" in resumed.err
    assert sorted(tmp_path.iterdir()) == sorted([path, out, tmp_path / "r.json"])
    path.write_text("<p>other</p>")
    assert command("mt-translate", trained, *settings).code == 0


def test_a_memory_stands_in_for_the_model(command: Command, trained: Path, tmp_path: Path, upper: list[str]) -> None:
    (tmp_path / "a.html").write_text("<p>ferry</p><p>ferry here</p>")
    (tmp_path / "memory.tsv").write_text("xa\txb\nferry\tFähre & Co\n")
    memory = f"input.memory={tmp_path / 'memory.tsv'}"
    done = command("mt-translate", trained, *QUICK, tmp_path / "a.html", memory)
    assert (done.out, upper) == ("<p>Fähre &amp; Co</p><p>FERRY HERE</p>", ["ferry here"])
    assert "2 texts: 1 translated, 1 from the memory" in done.err
    missing = command("mt-translate", trained, tmp_path / "a.html", "input.memory=other.txt")
    assert "input.memory (other.txt) is no file of translations" in missing.error


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["a.html", "output.format=jsonl"], "a.html is a document, and output.format is for lines"),
        (["a.html", "a.txt", "-o", "out"], "a.txt has lines, and a.html is a document: translate them apart"),
        (["a.html", "b.html"], "several documents go to a folder: name it with -o"),
        (["a.html", "-o", "b.txt"], "b.txt: a document keeps its form; let its name end in .html"),
        (["a.html", "-o", "a.html"], "a.html is read, too"),
        (["a.html", "sub/a.html", "-o", "out"], "would both become out/a.html"),
        (["a.txt", "--json", "r.json"], "--json reports on documents, and these are lines"),
        (["sub", "a.html"], "sub is a folder"),
        (["a.parquet", "input.column=a", "-o", "b.parquet"], ".parquet is read and not written"),
        (["a.html", "-o", "c.html", "--json", "c.html"], "c.html gets the output: name another file for --json"),
        (["a.txt", "-o", "c.docx"], "c.docx: lines are written, which are no .docx"),
        (["a.txt", "input.memory=a.tsv"], "input.memory stands in for the model in documents"),
        (["sub", "-o", "out", "input.column=a"], "input.format and input.column are for one file"),
        (["a.html", "--json", "sub"], "sub is a folder"),
        (["book.epub"], "book.epub: an e-book is no document that is read (.arb "),
    ],
)
def test_what_does_not_fit_a_document_is_refused(
    command: Command,
    trained: Path,
    tmp_path: Path,
    arguments: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("a.html", "b.html", "sub/a.html", "a.txt", "book.epub", "a.parquet"):
        (tmp_path / name).write_text("<p>ferry</p>")
    before = sorted(tmp_path.rglob("*"))
    refused = command("mt-translate", trained, *arguments)
    assert refused.code in (1, 2)
    assert complaint in refused.error
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [p for p in before if p.is_file()]


def test_a_document_in_another_language_is_refused(tmp_path: Path) -> None:
    from tolka.jobs.documents import _check_language
    from tolka.text.direction import Direction

    korean = "나는 당신을 사랑합니다. 오늘은 날씨가 좋습니다. " * 5
    with pytest.raises(DataError, match="its text is not in en, from which the model translates"):
        _check_language(tmp_path / "a.html", korean, Direction("en", "de"))
    _check_language(tmp_path / "a.html", korean, Direction("ko", "de"))
    _check_language(tmp_path / "a.html", korean, Direction("", ""))


def test_documents_are_translated_from_python(trained: Path, tmp_path: Path, upper: list[str]) -> None:
    (tmp_path / "a.html").write_text("<p>ferry</p>")
    tolka.translate_files(trained, [tmp_path / "a.html"], output=tmp_path / "b.html", search="greedy")
    assert (tmp_path / "b.html").read_text() == "<p>FERRY</p>"


def test_a_memory_of_two_columns_and_what_it_counts(
    command: Command, trained: Path, tmp_path: Path, upper: list[str]
) -> None:
    (tmp_path / "a.html").write_text("<p>ferry <b>here</b></p><p>lantern</p>")
    (tmp_path / "memory.tsv").write_text("ferry here\tHier Fähre\n")
    done = command("mt-translate", trained, *QUICK, tmp_path / "a.html", f"input.memory={tmp_path / 'memory.tsv'}")
    assert re.fullmatch(r"<p>(?=.*<b>.*</b>).*Fähre.*</p><p>LANTERN</p>", done.out)
    assert "to check: 1 of 2 texts (markup 1)" in done.err


def test_a_folder_goes_on_behind_what_is_newer_than_its_original(
    command: Command, trained: Path, tmp_path: Path, upper: list[str]
) -> None:
    site, out = tmp_path / "site", tmp_path / "site" / "de"
    site.mkdir()
    for name in ("a", "b", "c"):
        (site / f"{name}.html").write_text(f"<p>{name} word</p>")
    arguments = ["mt-translate", trained, *QUICK, site, "-o", out, "resume=true"]
    command(*map(str, arguments))
    os.utime(out / "a.html", (1, 1))  # older than its original
    (out / "b.html").unlink()
    upper.clear()
    again = command(*map(str, arguments))
    assert sorted(upper) == ["a word", "b word"]
    assert f"1 file in {out} stay, as they are newer" in again.err
    assert sorted(path.name for path in out.iterdir()) == ["a.html", "b.html", "c.html"]
