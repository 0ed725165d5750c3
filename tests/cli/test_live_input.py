"""mt-translate beside somebody who writes a line and waits for its translation: a program, or a person who types."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any

import pytest
from guarded_command import guarded

from tolka.cli import translate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits for a pipe with select, and needs terminals")
QUICK = ["search=greedy", "search.max_length_factor=0", "search.max_length_extra=3"]
MAIN = "from tolka.cli import mt_translate; mt_translate()"
_SECONDS = 120  # until a test fails that would otherwise wait for ever


@contextmanager
def running(model: Path, *settings: str, **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """mt-translate, with output that Python keeps back as it does by default."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", MAIN, str(model), *QUICK, *settings]
    with subprocess.Popen(command, env={**environment, "TERM": "xterm"}, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(handle: int, end: bytes, text: bytes = b"") -> bytes:
    """What is written there, up to and with `end`."""
    deadline = time.monotonic() + _SECONDS
    while not text.endswith(end):
        assert select([handle], [], [], max(0, deadline - time.monotonic()))[0], f"no answer; so far: {text!r}"
        text += os.read(handle, 1000)
    return text


@pytest.mark.slow
def test_a_program_that_waits_for_each_answer(trained: Path) -> None:
    with running(trained, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for question in (b"ferry\n", b"kettle\npebble\n", b"ferry\n"):
            os.write(process.stdin.fileno(), question)
            answer = b""
            for _ in range(question.count(b"\n")):
                answer = read_until(process.stdout.fileno(), b"\n", answer)
            answers.append(answer)
        os.write(process.stdin.fileno(), b"ferry")  # without a line feed, it ends where the pipe does
        process.stdin.close()
        answers.append(process.stdout.read())
        assert process.wait(_SECONDS) == 0
    assert answers[0] == answers[2] == answers[3]
    assert answers[0].strip()
    assert answers[1].count(b"\n") == 2


@pytest.mark.parametrize("name", ["nbest", "jsonl"])
def test_a_program_that_waits_for_each_answer_in_another_format(
    trained: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mt-translate in this process, with the buffers that Python puts around two pipes."""
    settings = [f"output.format={name}", "input.format=tsv", "input.column=1"]
    words = ("ferry", "", "kettle")
    (given, asking), (answering, written) = os.pipe(), os.pipe()

    def ask() -> list[str]:
        answers = []
        with open(asking, "wb", buffering=0) as questions, open(answering, "rb", buffering=0) as pipe:
            for word in words:
                questions.write(f"{word}\tmore\n".encode())
                answers.append(read_until(pipe.fileno(), b"\n").decode())
        return answers

    with open(given) as stdin, open(written, "w") as stdout, ThreadPoolExecutor() as pool:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        answers = pool.submit(ask)
        assert guarded(translate.run, [str(trained), *QUICK, *settings]) == 0
    for number, (word, answer) in enumerate(zip(words, answers.result(), strict=True)):
        if name == "nbest":
            assert answer.startswith(f"{number} ||| ")
        else:
            assert json.loads(answer)["source"] == word


def test_sigterm_leaves_nothing_of_an_output_file(trained: Path, tmp_path: Path) -> None:
    with running(trained, "-o", str(tmp_path / "out"), stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + _SECONDS
        while not os.listdir(tmp_path):  # the file that is to become `out`
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.terminate()
        assert process.wait(_SECONDS) == 143
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_no_bar_runs_over_what_is_typed(trained: Path) -> None:
    import pty
    import termios
    import tty

    master, terminal = pty.openpty()
    tty.setcbreak(terminal)  # no echo: what is read is what the command wrote
    termios.tcsetwinsize(terminal, (24, 80))
    with running(trained, stdin=terminal, stdout=terminal, stderr=terminal):
        os.close(terminal)
        greeting = read_until(master, b"\n")
        os.write(master, b"ferry\n")
        answer = read_until(master, b"\n")
    os.close(master)
    assert greeting == b"type a line to translate it; end with Ctrl-D\r\n"
    assert answer.strip()
    assert b"translating" not in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", ["file", pytest.param("redirected", marks=pytest.mark.slow), pytest.param("pipe", marks=pytest.mark.slow)]
)
def test_a_terminal_shows_progress_rate_and_time_left(trained: Path, tmp_path: Path, place: str) -> None:
    import pty
    import termios

    (tmp_path / "text").write_text("ferry kettle\n" * 6000)
    master, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    given = [str(tmp_path / "text")] if place == "file" else []
    with (
        open(tmp_path / "text", "rb") as text,
        running(
            trained,
            *given,
            "-o",
            str(tmp_path / "out"),
            "decoding.window=100",
            stdin={"file": subprocess.DEVNULL, "redirected": text, "pipe": subprocess.PIPE}[place],
            stderr=terminal,
        ) as process,
    ):
        os.close(terminal)
        if process.stdin is not None:
            process.stdin.write(text.read())
            process.stdin.close()
        shown = b""
        with suppress(OSError):  # the terminal's end
            while part := os.read(master, 1000):
                shown += part
        assert process.wait(_SECONDS) == 0
    os.close(master)
    lines = [line for line in re.split(r"\r|\n", shown.decode()) if "lines/s" in line]
    assert lines, shown
    if place == "pipe":  # where it ends is not known
        assert re.search(r"translating: \d+ lines \[\d\d:\d\d, +[\d.]+k? lines/s\]", lines[-1]), lines[-1]
    else:
        pattern = r"translating: +\d+%\|.*\| \d+/6000 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+k? lines/s\]"
        assert re.search(pattern, lines[-1]), lines[-1]
    assert (tmp_path / "out").read_text().count("\n") == 6000
