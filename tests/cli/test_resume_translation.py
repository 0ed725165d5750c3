"""mt-translate -o OUT resume=true: a job that was ended goes on, and its output is that of one that was not."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
QUICK = ["search=greedy", "search.max_length_factor=0", "search.max_length_extra=3", "decoding.window=20"]
MAIN = "from tolka.cli import mt_translate; mt_translate()"
WORDS = ["ferry", "kettle", "", "pebble walnut", "copper lantern . saddle .", "a b"]
TEXT = "".join(f"{WORDS[number % 6]} {WORDS[number % 5]}\n" for number in range(90)).encode()
_SECONDS = 120


def recorded(folder: Path) -> int:
    """How many lines a job has recorded."""
    try:
        return int(json.loads((folder / ".out.partial.json").read_text())["state"]["lines"])
    except FileNotFoundError:
        return 0


def interrupt(model: Path, out: Path, number: int, *settings: str, text: bytes = TEXT) -> "tuple[int, str]":
    """Give a job 50 lines of the text, and end it once it has recorded two windows of 20; exit code and messages."""
    command = [sys.executable, "-c", MAIN, str(model), "-o", str(out), "resume=true", *QUICK, *settings]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(text.splitlines(keepends=True)[:50]))
        process.stdin.flush()
        deadline = time.monotonic() + _SECONDS
        while recorded(out.parent) < 40:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        code = process.wait(_SECONDS)
        return code, process.stderr.read().decode()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SIGTERM", []),
        ("SIGKILL", ["output.format=nbest"]),
        ("SIGINT", ["output.format=jsonl"]),
    ],
)
def test_a_job_that_was_ended_goes_on(
    command: Command, trained: Path, tmp_path: Path, name: str, settings: list[str]
) -> None:
    whole = command("mt-translate", trained, *QUICK, *settings, stdin=TEXT)
    number = getattr(signal, name)
    code, messages = interrupt(trained, tmp_path / "out", number, *settings)
    assert code == (-number if name == "SIGKILL" else 128 + number)
    kept = f"note: 40 lines are kept in {tmp_path}/.out.partial; the same command continues there\n"
    assert (kept in messages) == (name != "SIGKILL")
    assert sorted(os.listdir(tmp_path)) == [".out.partial", ".out.partial.json"]
    again = command("mt-translate", trained, "-o", tmp_path / "out", "resume=true", *QUICK, *settings, stdin=TEXT)
    assert (again.code, again.out) == (0, "")
    assert f"resuming after 40 lines in {tmp_path}/.out.partial\n" in again.err
    assert (tmp_path / "out").read_text(encoding="utf-8") == whole.out
    assert again.err.partition("\n")[2] == whole.err  # its notes count all lines
    assert os.listdir(tmp_path) == ["out"]


@pytest.fixture
def begun(command: Command, trained: Path, tmp_path: Path) -> Path:
    """The place of an output file whose job has recorded 40 lines: its text was broken in line 51."""
    broken = b"".join([*TEXT.splitlines(keepends=True)[:50], b"\xff\n"])
    outcome = command("mt-translate", trained, "-o", tmp_path / "out", "resume=true", *QUICK, stdin=broken)
    assert outcome.error.startswith("stdin:51: not UTF-8")
    assert "note: 40 lines are kept in" in outcome.err
    assert recorded(tmp_path) == 40
    return tmp_path / "out"


def test_a_mended_input_goes_on(command: Command, trained: Path, begun: Path) -> None:
    (begun.parent / "text").write_bytes(TEXT)  # a file is as good as the stream that was read before
    outcome = command("mt-translate", trained, begun.parent / "text", "-o", begun, "resume=true", *QUICK)
    assert outcome.code == 0
    assert begun.read_text() == command("mt-translate", trained, *QUICK, stdin=TEXT).out


@pytest.mark.parametrize(
    ("settings", "text", "complaint"),
    [
        (["search.max_length_extra=4"], TEXT, "search.max_length_extra was 3 when it was begun, and is 4 now"),
        (["output.format=jsonl"], TEXT, "output.format was 'text' when it was begun, and is 'jsonl' now"),
        (["decoding.window=10"], TEXT, "decoding.window was 20 when it was begun, and is 10 now"),
        ([], b"x" + TEXT, "the first 40 lines of the input are not those of the interrupted job"),
        ([], TEXT[:100], "the first 40 lines of the input are not those of the interrupted job"),
    ],
)
def test_what_must_be_as_it_was(
    command: Command, trained: Path, begun: Path, settings: list[str], text: bytes, complaint: str
) -> None:
    arguments = ["-o", begun, "resume=true", *QUICK, *settings]
    outcome = command("mt-translate", trained, *arguments, stdin=text)
    assert outcome.code == 1
    assert complaint in outcome.error
    assert f"remove {begun.parent}/.out.partial to begin again" in outcome.error
    assert recorded(begun.parent) == 40
    (begun.parent / ".out.partial").unlink()
    assert command("mt-translate", trained, *arguments, stdin=text).code == 0


def test_another_model_or_another_kind_of_job(command: Command, trained: Path, begun: Path) -> None:
    outcome = command("mt-translate", f"{trained},{trained}", "-o", begun, "resume=true", *QUICK, stdin=TEXT)
    assert "cannot be resumed: the model was ['" in outcome.error
    (begun.parent / "text").write_bytes(TEXT)
    files = [begun.parent / "text", begun.parent / "text"]
    files[1] = begun.parent / "other"
    files[1].write_bytes(TEXT)
    scored = command("mt-translate", trained, "--score", *files, "-o", begun, "resume=true", *QUICK)
    assert "cannot be resumed: --score was False when it was begun, and is True now" in scored.error
    drawn = command(
        "mt-translate", trained, "-o", begun, "resume=true", *QUICK, "--attention", begun.parent, stdin=TEXT
    )
    assert "cannot be resumed: --attention was False when it was begun, and is True now" in drawn.error


def test_without_resume_it_begins_again(command: Command, trained: Path, begun: Path) -> None:
    outcome = command("mt-translate", trained, "-o", begun, *QUICK, stdin=TEXT)
    assert outcome.code == 0
    assert f"note: an interrupted job has left a part of {begun}: resume=true continues it" in outcome.err
    assert begun.read_text() == command("mt-translate", trained, *QUICK, stdin=TEXT).out


def test_a_job_that_is_not_interrupted(command: Command, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out")
    outcome = command("mt-translate", trained, "-o", tmp_path / "link", "resume=true", *QUICK, stdin=TEXT)
    assert outcome.code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_text() == command("mt-translate", trained, *QUICK, stdin=TEXT).out
    assert sorted(os.listdir(tmp_path)) == ["link", "out"]


def test_an_error_before_the_first_window_leaves_nothing(command: Command, trained: Path, tmp_path: Path) -> None:
    outcome = command("mt-translate", trained, "-o", tmp_path / "out", "resume=true", *QUICK, stdin=b"ferry\n\xff\n")
    assert outcome.code == 1
    assert os.listdir(tmp_path) == []


def test_scores_are_resumed(command: Command, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(TEXT)
    good = TEXT.replace(b"ferry", b"mirka")
    (tmp_path / "b").write_bytes(good)
    expected = command("mt-translate", trained, "--score", tmp_path / "a", tmp_path / "b", *QUICK).out
    given = [trained, "--score", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out", "resume=true", *QUICK]
    (tmp_path / "b").write_bytes(b"".join([*good.splitlines(keepends=True)[:49], b"\xff\n" * 41]))
    assert command("mt-translate", *given).code == 1
    assert recorded(tmp_path) == 40
    (tmp_path / "b").write_bytes(good)
    assert command("mt-translate", *given).code == 0
    assert (tmp_path / "out").read_text() == expected


def test_maps_go_on_with_their_numbers(command: Command, trained: Path, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    given = ["-o", tmp_path / "out", "resume=true", *QUICK, "--attention", maps]
    broken = b"".join([*TEXT.splitlines(keepends=True)[:50], b"\xff\n"])
    assert command("mt-translate", trained, *given, stdin=broken).code == 1
    assert recorded(tmp_path) == 40
    for path in maps.iterdir():
        path.unlink()
    assert command("mt-translate", trained, *given, stdin=TEXT).code == 0
    assert sorted(path.stem for path in maps.glob("*.json")) == [f"{number:06d}" for number in range(41, 91)]
