"""Functions in processes of their own: their answers, their errors, and their end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gone import is_gone

from tolka.errors import DataError, StoppedError, TolkaError
from tolka.system.workers import call, call_each

LOST = "it ended with {}"
FUNCTIONS = """
import os, signal, sys, time
from pathlib import Path
from typing import Any
from tolka.errors import DataError, StoppedError

def add(one, other):
    print("no answer")
    return one + other, os.getpid()

def joined(mark, lines):
    return mark.join(lines)

def first(lines):
    return next(lines)

def fail(error):
    raise error

def end(code):
    if code < 0:
        os.kill(os.getpid(), -code)
    raise SystemExit("no disk" if code else 0)

def memory(size):
    raise MemoryError

def wait(folder, number):
    Path(folder, f"{number}.part").write_text(str(os.getpid()))
    Path(folder, f"{number}.part").rename(Path(folder, str(number)))
    time.sleep(600)
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of functions, which lies where this process finds modules."""
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "functions_of_a_test.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path / "found"))
    import functions_of_a_test  # type: ignore[import-not-found]

    yield functions_of_a_test
    del sys.modules["functions_of_a_test"]


def test_a_call_answers_from_another_process(functions: Any) -> None:
    (total, process) = call(functions.add, 2, 3, lost=LOST)
    assert total == 5
    assert process != os.getpid()


def test_lines_of_any_number_and_content_arrive(functions: Any) -> None:
    lines = ["", ".", "+\n", "ä\ud800", *map(str, range(5000))]
    assert call(functions.joined, "|", lost=LOST, lines=iter(lines)) == "|".join(lines)
    assert call(functions.joined, "|", lost=LOST, lines=[]) == ""
    # One that reads only the first of them holds nobody up.
    many = (str(number) * 100 for number in range(100_000))
    assert call(functions.first, lost=LOST, lines=many) == "0" * 100


@pytest.mark.parametrize("processes", [1, 2])
def test_each_part_is_answered_once(functions: Any, processes: int) -> None:
    answers = [*call_each(partial(functions.add, 1), [*range(9)], processes, LOST)]
    assert sorted(total for total, _ in answers) == [*range(1, 10)]
    assert (os.getpid() in {process for _, process in answers}) == (processes == 1)
    assert [*call_each(functions.add, [], processes, LOST)] == []


@pytest.mark.parametrize(
    "error", [DataError("no pairs"), StoppedError("stopped", 143), OSError(28, "No space left on device", "file")]
)
def test_an_error_is_raised_here_as_it_was_there(functions: Any, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        call(functions.fail, error, lost=LOST)
    assert str(caught.value) == str(error)
    assert getattr(caught.value, "exit_code", 0) == getattr(error, "exit_code", 0)
    assert "in fail" in caught.value.__notes__[0]
    with pytest.raises(type(error)):
        [*call_each(partial(functions.fail), [error, error], 2, LOST)]


@pytest.mark.parametrize(
    ("name", "argument", "words"),
    [
        ("end", -9, "it ended with -9: killed; was there enough memory?"),
        ("end", 1, "it ended with 1: no disk"),
        ("end", 0, "it ended with 0: killed; was there enough memory?"),
        ("memory", 1, "it ended with 1: MemoryError"),
        ("lacking", 1, "it ended with 1: AttributeError: "),
    ],
)
def test_a_process_that_ends_without_an_answer_is_one_line(
    functions: Any, name: str, argument: int, words: str
) -> None:
    function = getattr(functions, name, None)
    if function is None:  # which is here, and not there

        def lacking(argument: int) -> None:
            pass

        lacking.__module__, lacking.__qualname__ = functions.__name__, name
        setattr(functions, name, lacking)
        function = lacking
    with pytest.raises(TolkaError) as caught:
        call(function, argument, lost=LOST)
    assert str(caught.value).startswith(words)
    with pytest.raises(TolkaError) as caught:
        [*call_each(function, [argument] * 9, 2, LOST)]
    assert str(caught.value).startswith(words)


def test_what_lies_in_the_current_folder_is_not_imported(
    functions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bz2", "pickle", "queue"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert call(functions.add, 2, 3, lost=LOST)[0] == 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as on Linux")
@pytest.mark.parametrize(
    ("number", "to_all"), [(signal.SIGKILL, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_workers_end_with_their_parent_and_it_does_not_wait_for_them(
    functions: Any, tmp_path: Path, number: int, to_all: bool
) -> None:
    """to_all: the signal goes to the workers too, as from a terminal, a batch system or systemd."""
    code = (
        "import sys; from functools import partial; from functions_of_a_test import wait\n"
        "from tolka.cli import common; from tolka.system.workers import call_each\n"
        f"common.own_process(lambda _: [*call_each(partial(wait, {str(tmp_path)!r}), [0, 1], 2, '{{}}')] and 0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    for _ in range(600):
        if (tmp_path / "0").exists() and (tmp_path / "1").exists():
            break
        time.sleep(0.05)
    workers = [int((tmp_path / name).read_text()) for name in "01"]
    (os.killpg if to_all else os.kill)(parent.pid, number)
    said = parent.communicate(timeout=60)[1], parent.returncode
    assert said == (("", -9) if number == signal.SIGKILL else ("stopped by SIGTERM\n", 143))
    assert all(map(is_gone, workers))
