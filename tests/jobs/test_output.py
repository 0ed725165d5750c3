"""What of an interrupted job counts as written, and what a resumed one must have in common with it."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows import each_row

from tolka.engines.options import DecodingConfig
from tolka.errors import DataError
from tolka.jobs.options import InputConfig, OutputConfig, TranslateConfig
from tolka.jobs.output import Journal, open_output
from tolka.search.options import BeamConfig, GreedyConfig
from tolka.text.pairs import Pair

CONFIG = TranslateConfig(GreedyConfig(), DecodingConfig(), InputConfig(), OutputConfig(resume=True))
ROWS = [Pair(text, "") for text in "abcdefg"]


class EndedError(Exception):
    """Ends a job."""


def run(
    path: Path,
    rows: Sequence[Pair] = ROWS,
    until: int = 99,
    config: TranslateConfig = CONFIG,
    said: list[str] | None = None,
    options: dict[str, bool] | None = None,
) -> list[str]:
    """Write each row in capitals, in windows of two, up to `until` rows; the texts that were read for that."""
    read: list[str] = []
    with open_output(path, None, config, [], options or {}, ([] if said is None else said).append) as out:
        journal = Journal(out, 2)
        count = journal.tally.get("lines", 0)
        assert count == journal.done
        remaining: Iterator[Pair] = journal.remaining(iter(rows))
        while window := [row for _, row in zip(range(2), remaining, strict=False)]:
            for row in window:
                if count == until:
                    raise EndedError
                out.write(f"{row.source.upper()}\n".encode())
                read.append(row.source)
                count += 1
            journal.record(window, {"lines": count})
        if count == until:
            raise EndedError
    return read


def interrupted(path: Path, until: int, rows: Sequence[Pair] = ROWS, said: list[str] | None = None) -> None:
    with pytest.raises(EndedError):
        run(path, rows, until, said=said)


@each_row(("until", "done"), [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4), (5, 4), (6, 6), (7, 6)])
def test_full_windows_are_written_and_the_rest_is_done_again(tmp_path: Path, until: int, done: int) -> None:
    """Also a last window that is not full, for a resumed job has the windows of an uninterrupted one."""
    out, said = tmp_path / f"out{until}", list[str]()
    interrupted(out, until, said=said)
    assert not out.exists()
    kept = f"note: {done} lines are kept in {tmp_path}/.out{until}.partial; the same command continues there"
    assert said == ([kept] if done else [])
    said.clear()
    assert "".join(run(out, said=said)) == "abcdefg"[done:]
    assert said == ([f"resuming after {done} lines in {tmp_path}/.out{until}.partial"] if done else [])
    assert out.read_text() == "A\nB\nC\nD\nE\nF\nG\n"


def test_interrupted_twice(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 3)
    interrupted(tmp_path / "out", 5)
    assert run(tmp_path / "out") == ["e", "f", "g"]
    assert (tmp_path / "out").read_text() == "A\nB\nC\nD\nE\nF\nG\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_rows_after_those_that_are_done_may_change(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 5)
    assert run(tmp_path / "out", [*ROWS[:4], Pair("x", ""), Pair("y", "")]) == ["x", "y"]


@each_row(
    "rows",
    [
        [Pair("x", ""), *ROWS[1:]],
        [*ROWS[:3], Pair("x", ""), *ROWS[4:]],
        [*ROWS[:3], Pair("d", "the beginning of its translation"), *ROWS[4:]],
        ROWS[1:],
        ROWS[:3],
        [],
    ],
)
def test_rows_that_are_done_may_not_change(tmp_path: Path, rows: list[Pair]) -> None:
    if not (tmp_path / ".out.partial").exists():
        interrupted(tmp_path / "out", 5)
    with pytest.raises(DataError, match="the first 4 lines of the input are not those of the interrupted job"):
        run(tmp_path / "out", rows)
    assert not (tmp_path / "out").exists()


@each_row(
    ("changed", "named"),
    [
        ({"search": BeamConfig()}, "search"),
        ({"search": GreedyConfig(min_length=3)}, "search.min_length was 0 .* and is 3 now"),
        ({"decoding": DecodingConfig(window=3)}, "decoding.window was 0"),
        ({"input": InputConfig(format="text")}, "input.format was 'auto'"),
        ({"output": OutputConfig("jsonl", resume=True)}, "output.format was 'text' .* and is 'jsonl' now"),
    ],
)
def test_another_output_is_not_continued(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    if not (tmp_path / ".out.partial").exists():
        interrupted(tmp_path / "out", 5)
    with pytest.raises(DataError, match=rf"out cannot be resumed: {named}"):
        run(tmp_path / "out", config=replace(CONFIG, **changed))


def test_options_that_are_no_settings_count_as_well(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 5)
    with pytest.raises(DataError, match="--score was None when it was begun, and is True now"):
        run(tmp_path / "out", options={"--score": True})


def test_the_number_of_threads_may_change(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 5)
    assert run(tmp_path / "out", config=replace(CONFIG, decoding=DecodingConfig(threads=1))) == ["e", "f", "g"]


@each_row("key", ["glossary", "banned"])
def test_a_file_counts_by_its_content(tmp_path: Path, key: str) -> None:
    file, out = tmp_path / f"{key}.tsv", tmp_path / f"out of {key}"
    file.write_text("a\tb\n")
    config = replace(
        CONFIG, search=BeamConfig(glossary=str(file)) if key == "glossary" else BeamConfig(banned=str(file))
    )
    with pytest.raises(EndedError):
        run(out, until=5, config=config)
    file.write_text("a\tc\n")
    with pytest.raises(DataError, match=f"the file search.{key} was"):
        run(out, config=config)
    file.write_text("a\tb\n")
    assert run(out, config=config) == ["e", "f", "g"]


def test_without_resuming_there_is_a_whole_file_or_none(tmp_path: Path) -> None:
    plain = replace(CONFIG, output=OutputConfig())
    with pytest.raises(EndedError):
        run(tmp_path / "out", until=5, config=plain)
    assert [*tmp_path.iterdir()] == []
    assert len(run(tmp_path / "out", config=plain)) == 7
    assert (tmp_path / "out").read_text() == "A\nB\nC\nD\nE\nF\nG\n"


def test_to_begin_again_is_said(tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 5)
    said: list[str] = []
    assert len(run(tmp_path / "out", config=replace(CONFIG, output=OutputConfig()), said=said)) == 7
    [note] = said
    assert note.startswith(f"note: an interrupted job has left a part of {tmp_path}/out: resume=true continues it")


def test_standard_output_is_written_as_it_is() -> None:
    written = io.BytesIO()
    stdout = io.TextIOWrapper(written, encoding="ascii")
    with open_output(None, stdout, CONFIG, [], {}, print) as out:
        journal = Journal(out, 2)
        assert [*journal.remaining(iter(ROWS))] == ROWS
        out.write("가\n".encode())
        journal.record(ROWS[:2], {})
    assert (written.getvalue(), journal.done) == ("가\n".encode(), 0)
    with pytest.raises(DataError, match="standard output is closed"), open_output(None, None, CONFIG, [], {}, print):
        pass
