"""SIGTERM, SIGHUP and Ctrl-C at each stage of each command: 128 + the number, one line, nothing half-written."""

import builtins
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gone import is_gone
from guarded_command import guarded

from tolka.data.shards import Shard
from tolka.evaluation import tester
from tolka.evaluation.validator import Validator
from tolka.report import curves, page
from tolka.system import interrupts
from tolka.tokenizer import training as tokenizer_training
from tolka.training.trainer import Trainer
from tolka.translation.translator import Translator

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as on Unix")

Command = Callable[..., Any]
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM", signal.SIGHUP: "stopped by SIGHUP"}
ALL = list(WORDS)
STAGES = {
    "preparation": (Shard, "clean"),
    "tokenizer": (tokenizer_training, "_learn"),
    "training": (Trainer, "_train_step"),
    "validation": (Validator, "__call__"),
    "test": (tester.Tester, "__call__"),
    "plots": (curves, "new_figure"),
    "report": (page, "render"),
}


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """As in a process of the command's own: under nohup, or in a script's background job, some would be ignored."""
    ignored = [number for number in ALL if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    interrupts.listen()
    yield
    interrupts._received.clear()
    interrupts._swallowed.clear()
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def reaching(patch: pytest.MonkeyPatch, owner: Any, name: str, *numbers: int) -> None:
    """Whoever calls this function gets these signals first."""
    real = getattr(owner, name)

    def called(*given: Any, **others: Any) -> Any:
        for number in numbers:
            os.kill(os.getpid(), number)
        return real(*given, **others)

    patch.setattr(owner, name, called)


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.suffix in (".partial", ".old")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "number"),
    [(stage, signal.SIGTERM) for stage in STAGES]
    + [(stage, number) for stage in ("training", "plots") for number in (signal.SIGINT, signal.SIGHUP)],
)
def test_every_stage_of_a_training_ends_and_the_same_command_goes_on(
    command: Command, tiny: list[str], tmp_path: Path, stage: str, number: signal.Signals
) -> None:
    with_page = ["report.page=true", "report.plots=true"] if stage in ("report", "plots") else []
    arguments = [*tiny, *with_page]
    with pytest.MonkeyPatch.context() as patch:
        reaching(patch, *STAGES[stage], number)
        outcome = command("mt-train", *arguments)
    assert outcome.code == 128 + number
    assert "Traceback" not in outcome.err
    saved = stage in ("training", "validation")
    where = f"update {1 if stage == 'training' else 5}; the same command continues from {tmp_path / 'run' / 'last'}"
    last = f"stopped by {number.name} at {where}" if saved else WORDS[number]
    assert [line for line in outcome.err.splitlines() if "stopped" in line or "interrupted" in line] == [last]
    if stage == "test":
        assert f"the same command continues from {tmp_path / 'run' / 'last'}" in outcome.err
    assert leftovers(tmp_path) == []
    if stage in ("preparation", "validation", "test"):
        assert command("mt-train", *arguments).code == 0


def test_a_signal_that_comes_twice_at_once_counts_once(command: Command, tiny: list[str], tmp_path: Path) -> None:
    """timeout(1) sends it to the process and to its group."""
    with pytest.MonkeyPatch.context() as patch:
        reaching(patch, Trainer, "_train_step", signal.SIGTERM, signal.SIGTERM)
        outcome = command("mt-train", *tiny)
    assert outcome.code == 143
    assert (tmp_path / "run" / "last" / "manifest.json").is_file()


def test_what_is_ignored_stays_ignored(command: Command, tiny: list[str]) -> None:
    """As nohup starts a command."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in (STAGES["training"], STAGES["test"]):
                reaching(patch, owner, name, signal.SIGHUP)
            assert command("mt-train", *tiny).code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_that_a_module_of_matplotlib_makes_an_import_error_of(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pybind11 does; it looked as if matplotlib were not installed, and the exit code was 0."""
    real = builtins.__import__

    def interrupted(name: str, *rest: Any, **named: Any) -> Any:
        if name == "matplotlib.figure":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("initialization failed") from None
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    outcome = command("mt-train", *tiny, "report.plots=true", "report.page=true")
    assert (outcome.code, outcome.err.splitlines()[-1]) == (130, "interrupted")
    assert "not installed" not in outcome.err


@pytest.mark.parametrize("number", ALL)
def test_the_other_commands(command: Command, trained: Path, tmp_path: Path, number: signal.Signals) -> None:
    text = tmp_path / "text"
    text.write_text("ferry\n")
    quick = ["decoding.device=cpu", "decoding.precision=fp32"]
    with pytest.MonkeyPatch.context() as patch:
        reaching(patch, Translator, "_call", number)
        translating = command("mt-translate", trained, text, "-o", tmp_path / "out", *quick)
        evaluating = command("mt-eval", trained, f"source={text}", f"reference={text}", *quick)
    for outcome in (translating, evaluating):
        assert (outcome.code, outcome.out, outcome.err) == (128 + number, "", f"{WORDS[number]}\n")
    assert list(tmp_path.iterdir()) == [text]


def swallowed(arguments: object) -> int:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        return 0
    return 1


def made_another_error(arguments: object) -> int:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        raise RuntimeError("as a module written in C says") from None
    return 1


def lost_in_a_destructor(arguments: object) -> int:
    class Going:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    Going()
    for _ in range(600):
        time.sleep(0.1)
    return 1


@pytest.mark.parametrize("lose", [swallowed, made_another_error, lost_in_a_destructor])
def test_a_signal_whose_exception_gets_lost(
    lose: Callable[[object], int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", interrupts._unraisablehook)
    assert guarded(lose, []) == 143
    assert capfd.readouterr().err == "stopped by SIGTERM\n"


# In processes of their own --------------------------------------------------------------------------------------------


def python(code: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(options.pop("path", "")), *sys.path])}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


IMPORTING = """
import os, sys
module, number, folder = sys.argv[1:]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))
sys.meta_path.insert(0, Finder())
from tolka.cli import mt_train
sys.argv[1:] = ["run.dir=" + folder]
mt_train()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "number"),
    [("tolka.system.surrogates", 15), ("tolka.cli.common", 15), ("tolka.cli.common", 2), ("hydra", 1)],
)
def test_while_a_command_is_being_imported(tmp_path: Path, module: str, number: int) -> None:
    """The first line of the package that could hear a signal is tolka.system.interrupts's, just after surrogates'."""
    done = python(IMPORTING, module, number, tmp_path / "run")
    _, said = done.communicate(timeout=120)
    early = module == "tolka.system.surrogates"
    assert (done.returncode, said) == ((-number, "") if early else (128 + number, f"{WORDS[signal.Signals(number)]}\n"))
    assert list(tmp_path.iterdir()) == []


AT_THE_END = """
import atexit, os, signal, sys
from tolka.cli import common
for _ in range(2):
    atexit.register(os.kill, os.getpid(), signal.SIGTERM)
sys.argv[1:] = []
common.own_process(lambda arguments: 0)
"""


def test_when_all_is_done_a_signal_stops_nothing() -> None:
    done = python(AT_THE_END)
    assert (done.communicate(timeout=120), done.returncode) == (("", ""), 0)


LEARNING = """
import sys
from tolka.cli import common
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tokenizer.training import train_tokenizer
pairs = [Pair("a" * 1000, "b" * 1000)] * 300
common.own_process(lambda arguments: train_tokenizer(TokenizerConfig(), lambda: iter(pairs), print) and 0)
"""
BUSY_FOR_EVER = """
import ctypes, os, sys
class SentencePieceTrainer:
    def train(sentence_iterator, **options):
        list(sentence_iterator)
        with open(os.environ["LEARNING"], "w") as stream:
            stream.write(str(os.getpid()))
        mutex, c = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
        c.pthread_mutex_lock(mutex)
        c.pthread_mutex_lock(mutex)  # as long as it computes, no handler of Python's runs
"""


def appears(path: Path) -> str:
    for _ in range(600):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.05)
    pytest.fail(f"{path} does not appear")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as on Linux")
def test_while_sentencepiece_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may take an hour, and lets nobody hear a signal meanwhile."""
    (tmp_path / "sentencepiece.py").write_text(BUSY_FOR_EVER)
    monkeypatch.setenv("LEARNING", str(tmp_path / "learning"))
    training = python(LEARNING, path=tmp_path)
    learner = int(appears(tmp_path / "learning"))
    training.terminate()
    assert (training.communicate(timeout=60), training.returncode) == (("", "stopped by SIGTERM\n"), 143)
    assert is_gone(learner)


SAYING = """
import fcntl, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from tolka.cli import common
from tolka.system.progress import bar, say
def run(arguments):
    with bar("waiting", 10**9, " times") as progress:
        while True:
            say("said")
            progress.update()
            time.sleep(0.001)
common.own_process(run)
"""


def test_a_terminal_that_is_closed_hears_nothing_more_and_the_exit_code_is_that_of_sighup() -> None:
    """What cannot be written to it any more is no error."""
    terminal, side = pty.openpty()
    done = python(SAYING, stdin=side, stdout=side, stderr=side, start_new_session=True)
    os.close(side)
    assert b"said" in os.read(terminal, 10_000)
    os.close(terminal)
    assert done.wait(timeout=60) == 129
