"""mt-translate input.*: one column of a table, and the beginnings of translations."""

import gzip
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tolka.jobs.inputs import Texts
from tolka.jobs.options import InputConfig
from tolka.text.lines import LineLimit
from tolka.translation.opening import open_model
from tolka.translation.request import Request
from tolka.translation.results import Translation
from tolka.translation.translator import Translator

Command = Callable[..., Any]
QUICK = ["search=greedy", "search.max_length_factor=0", "search.max_length_extra=3"]
TEXTS = ["ferry", "", "pebble walnut", "kettle"]
TSV = "id\ttext\tbegin\n1\tferry\tfjon\n\n3\tpebble walnut\t\n4\tkettle\tmirka\n"
CSV = 'id,text,begin\n1,ferry,fjon\n\n3,"pebble\nwalnut",\n4,kettle,mirka\n'
JSONL = (
    '{"id": 1, "text": "ferry", "begin": "fjon"}\n\n{"text": "pebble\\nwalnut", "begin": null}\n'
    '{"translation": {"text": "kettle", "begin": "mirka"}}\n'
)


def write_tables(folder: Path) -> None:
    (folder / "a.tsv").write_text(TSV)
    (folder / "numbers.tsv").write_text(TSV.partition("\n")[2])
    (folder / "a.tsv.gz").write_bytes(gzip.compress(TSV.encode()))
    (folder / "a.csv").write_text(CSV)
    (folder / "a.jsonl").write_text(JSONL)
    (folder / "a.jsonl.xz").write_bytes(lzma.compress(JSONL.encode()))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("a.tsv", "text"),
        ("numbers.tsv", "2"),
        ("a.tsv.gz", "text"),
        ("a.csv", "text"),
        ("a.jsonl", "text"),
        ("a.jsonl.xz", "text"),
    ],
)
def test_a_column_is_translated_row_by_row(
    command: Command, trained: Path, tmp_path: Path, name: str, column: str
) -> None:
    write_tables(tmp_path)
    expected = command("mt-translate", trained, *QUICK, stdin="".join(f"{text}\n" for text in TEXTS).encode()).out
    outcome = command("mt-translate", trained, *QUICK, tmp_path / name, f"input.column={column}")
    assert (outcome.code, outcome.out) == (0, expected)
    assert "looks like" not in outcome.err
    if name.count(".") == 1:  # not compressed: the same from standard input
        kind = name.rpartition(".")[2]
        settings = [f"input.column={column}", f"input.format={kind}"]
        assert command("mt-translate", trained, *QUICK, *settings, stdin=(tmp_path / name).read_bytes()).out == expected


@pytest.mark.parametrize("nested", [False, True])
def test_a_column_of_parquet(command: Command, trained: Path, tmp_path: Path, nested: bool) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text": text or None, "begin": "x"} for text in TEXTS]
    table = pyarrow.table({"translation": rows}) if nested else pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "a.parquet")
    expected = command("mt-translate", trained, *QUICK, stdin="".join(f"{text}\n" for text in TEXTS).encode()).out
    outcome = command("mt-translate", trained, *QUICK, tmp_path / "a.parquet", "input.column=text")
    assert (outcome.code, outcome.out) == (0, expected), outcome.err
    missing = command("mt-translate", trained, tmp_path / "a.parquet", "input.column=txt")
    assert "a.parquet: no column is called 'txt'." in missing.error
    assert "Name one of them with input.column" in missing.error
    no_column = command("mt-translate", trained, tmp_path / "a.parquet")
    assert "this is Parquet, not plain text; name its column" in no_column.error


def test_a_table_without_a_column_is_text_as_before(command: Command, trained: Path, tmp_path: Path) -> None:
    write_tables(tmp_path)
    outcome = command("mt-translate", trained, *QUICK, tmp_path / "a.tsv")
    assert outcome.out.count("\n") == 5  # the first line is one too
    assert (
        f"note: {tmp_path}/a.tsv looks like a table: every line of it is translated as text, all columns included; "
        "input.column=NAME translates one column alone\n"
    ) in outcome.err


@pytest.mark.parametrize(
    ("settings", "stdin", "code", "complaint"),
    [
        (["input.column=2"], "a\tb\n", 2, "input.column=2 needs to know what standard input is: add input.format=tsv"),
        (["input.format=tsv"], "a\n", 2, "input.format=tsv has columns: name the one to translate with input.column"),
        (["input.format=text", "input.column=2"], "a\n", 2, "input.column (2) names a column, and input.format=text"),
        (["input.format=tsv", "input.column=0"], "a\n", 2, "input.column (0): columns are counted from 1"),
        (["input.format=xml"], "a\n", 2, "input.format ('xml') is unknown"),
        (["input.format=parquet", "input.column=a"], "a\n", 2, "input.format=parquet cannot be read from standard"),
        (["input.format=tsv", "input.column=b"], "a\tc\n", 1, "stdin:1: no column is called 'b'."),
        (["input.format=tsv", "input.column=3"], "a\tc\n", 1, "stdin:1: 2 columns, and column 3 is wanted"),
        (["input.format=jsonl", "input.column=b"], '{"a": ""}\n', 1, "stdin:1: no column is called 'b'."),
        (["input.format=jsonl", "input.column=b"], '\n["b"]\n', 1, "stdin:2: not an object such as"),
        (["input.format=jsonl", "input.column=b"], "b\n", 1, "stdin:1: not JSON ("),
        (["input.format=jsonl", "input.column=b"], '{"b": 1}\n', 1, "stdin:1: 'b' holds 1, which is not text"),
        (["search.prefix=none"], "a\n", 1, "input.prefix: there is no file none"),
    ],
)
def test_input_that_cannot_be_read(
    command: Command, trained: Path, settings: list[str], stdin: str, code: int, complaint: str
) -> None:
    outcome = command("mt-translate", trained, *QUICK, *settings, stdin=stdin.encode())
    assert outcome.code == code
    assert outcome.error.startswith(complaint)


def test_rows_before_a_bad_one_are_translated(command: Command, trained: Path) -> None:
    settings = [*QUICK, "input.format=jsonl", "input.column=b"]
    outcome = command("mt-translate", trained, *settings, stdin=b'{"b": "ferry"}\n{"b": "kettle"}\n7\n')
    assert (outcome.code, outcome.out.count("\n")) == (1, 2)
    assert outcome.error.startswith("stdin:3: not an object")


def test_a_prefix_that_is_too_long_is_named_and_those_before_it_are_translated(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "prefixes").write_text("ferry\n\n" + "ferry " * 40 + "\n")
    outcome = command("mt-translate", trained, *QUICK, f"search.prefix={tmp_path}/prefixes", stdin=b"ferry\n" * 3)
    assert (outcome.code, outcome.out.count("\n")) == (1, 2)
    assert outcome.error.startswith(f"{tmp_path}/prefixes:3: a prefix of ")
    (tmp_path / "prefixes").write_text("ferry " * 40 + "\n")
    first = command("mt-translate", trained, *QUICK, f"search.prefix={tmp_path}/prefixes", stdin=b"ferry\n")
    assert (first.out, first.err.count("\n")) == ("", 1), "that there was no line is no news here"


def test_rows_with_a_flaw_are_noted(command: Command, trained: Path) -> None:
    rows = 'ferry,x\n"open,x\n' + "kettle,x\n" * 25 + '5",x\n'
    outcome = command("mt-translate", trained, *QUICK, "input.format=csv", "input.column=1", stdin=rows.encode())
    assert (outcome.code, outcome.out.count("\n")) == (0, 2)
    assert "note: 1 row has a cell of 20 lines or more; each was translated as one line\n" in outcome.err


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_an_empty_table_has_no_rows(command: Command, trained: Path, kind: str) -> None:
    outcome = command("mt-translate", trained, *QUICK, f"input.format={kind}", "input.column=1", stdin=b"")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "note: there was no line to translate\n"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What a translator is asked for: (text, prefix)."""
    asked: list[tuple[str, str]] = []
    real = Translator.translate

    def watched(self: Any, texts: Sequence[str], request: Request, tick: Any) -> list[Translation]:
        asked.extend(zip(texts, request.prefixes or [""] * len(texts), strict=True))
        return real(self, texts, replace(request, prefixes=()), tick)

    monkeypatch.setattr(Translator, "translate", watched)
    return asked


def test_prefixes_come_from_a_file(
    command: Command, trained: Path, tmp_path: Path, begun: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path)
    expected = list(zip(TEXTS, ["fjon", "", "", "mirka"], strict=True))
    (tmp_path / "begin").write_text("fjon\n\n\nmirka\n")
    (tmp_path / "text").write_text("".join(f"{text}\n" for text in TEXTS))
    monkeypatch.chdir(tmp_path)
    for given in (
        ["text", "search.prefix=begin", "decoding.window=2"],
        ["text", "input.prefix=begin"],
        ["a.csv", "input.column=text", "input.prefix=begin"],
    ):
        assert command("mt-translate", trained, *QUICK, *given).code == 0
        assert begun == expected, given
        begun.clear()
    command("mt-translate", trained, *QUICK, "text")
    assert {prefix for _, prefix in begun} == {""}


@pytest.mark.parametrize(
    ("lines", "place", "complaint"),
    [
        (3, "file", "begin has 3 lines, and the texts to translate are 4"),
        (5, "file", "begin has 5 lines, and the texts to translate are 4"),
        (3, "stdin", "begin has only 3 lines, and the texts to translate are more"),
        (5, "stdin", "begin has more lines than the 4 texts to translate"),
    ],
)
def test_prefixes_of_another_number(
    command: Command, trained: Path, tmp_path: Path, lines: int, place: str, complaint: str
) -> None:
    (tmp_path / "begin").write_text("mirka\n" * lines)
    text = b"ferry\n" * 4
    (tmp_path / "text").write_bytes(text)
    inputs, stdin = ([tmp_path / "text"], b"") if place == "file" else ([], text)
    longer = [*QUICK[:2], "search.max_length_extra=9"]  # the prefix has five subwords
    outcome = command("mt-translate", trained, *longer, *inputs, f"search.prefix={tmp_path / 'begin'}", stdin=stdin)
    assert outcome.code == 1
    assert complaint in outcome.error


def test_a_prefix_is_a_wish_of_the_first_segment(trained: Path) -> None:
    translator = open_model(trained)
    segmenter = translator._segmenter(translator.request)
    source = segmenter.segment("ferry . kettle .", " mirka ")
    assert [translator.tokenizer.decode_target([segment.wish.prefix]) for segment in source.segments] == [
        ["mirka"],
        [""],
    ]
    assert not segmenter.segment("", "mirka").segments


def test_counting_standard_input_leaves_it_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\nb\nc")
    with open(tmp_path / "text", encoding="utf-8") as stream:
        texts = Texts([], InputConfig(), LineLimit(), stream)
        assert stream.buffer.read(2) == b"a\n"
        assert texts.count() == 2
        assert [pair.source for pair in texts.read()] == ["b", "c"]


def test_jsonl_in_and_out(command: Command, trained: Path, tmp_path: Path) -> None:
    write_tables(tmp_path)
    outcome = command("mt-translate", trained, *QUICK, tmp_path / "a.jsonl", "input.column=text", "output.format=jsonl")
    assert [json.loads(line)["source"] for line in outcome.out.splitlines()] == TEXTS
