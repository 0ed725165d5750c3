"""What the commands leave of the process that calls them: all that they found."""

import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from guarded_command import guarded

from tolka.system import interrupts

PROCESS = """
import logging, os, pkgutil, signal, sys, threading, warnings  # torch and numpy have filters of their own
def facts():
    return (
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
        (sys.excepthook, sys.unraisablehook, threading.excepthook), warnings.showwarning, dict(os.environ),
        (logging.getLogger().level, list(logging.getLogger().handlers)), sys.argv, sys.path,
    )
before = facts()
import tolka.cli
for module in pkgutil.iter_modules(tolka.cli.__path__):
    __import__("tolka.cli." + module.name)
changed = [old for old, new in zip(before, facts(), strict=True) if old != new]
sys.exit(f"changed: {changed}" if changed else 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals as on Unix")
def test_importing_the_commands_changes_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def facts() -> list[Any]:
    return [
        *(signal.getsignal(number) for number in interrupts.SIGNALS),
        *(sys.excepthook, sys.unraisablehook, warnings.showwarning, dict(os.environ), list(sys.argv)),
        *(logging.getLogger().level, list(logging.getLogger().handlers), sys.stderr),
    ]


@pytest.fixture
def default_handlers() -> Any:
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in interrupts.SIGNALS]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.usefixtures("default_handlers")
@pytest.mark.parametrize("name", ["train", "translate", "evaluate"])
def test_a_command_puts_everything_back(
    name: str, tiny: list[str], trained: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reference = corpus / "test.xa", corpus / "test.xb"
    arguments: dict[str, list[Any]] = {
        "train": tiny,
        "translate": [trained, source, "-o", tmp_path / "out"],
        "evaluate": [f"hypothesis={source}", f"reference={reference}", "metrics.bootstrap=0"],
    }
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments[name])])
    run: Callable[[Sequence[str]], int] = import_module(f"tolka.cli.{name}").run
    before = facts()
    assert (guarded(run, sys.argv[1:]), facts()) == (0, before)


CLOSED = (
    "import sys; from tolka.cli.common import own_process; own_process(lambda arguments: sys.stderr.write('x') - 1)"
)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a shell as on Unix")
def test_a_closed_stderr_takes_what_is_said() -> None:
    assert subprocess.run(["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, CLOSED], timeout=120).returncode == 0
