"""Commands of tolka in processes of their own, so that memory is given back when they end."""

from collections.abc import Sequence
from pathlib import Path

from tolka.errors import StoppedError, TolkaError
from tolka.system.atomic import one_at_a_time
from tolka.system.progress import say
from tolka.system.workers import call, run_module


def run_command(command: Sequence[str], lock: Path) -> None:
    """Run `python -m tolka` with these arguments, writing to our stderr.

    lock: a file that one such process at a time has; others wait. A signal is passed on, and however this process ends,
    the other one saves its work and ends, too. StoppedError where that one was ended by a signal, and TolkaError, which
    it has reported, where it failed.
    """
    code = call(_run, command, lock, is_command=True)
    if code > 128:
        raise StoppedError("stopped; the same command goes on", code)
    if code:
        error = TolkaError(f"tolka {command[0]} failed")
        error.reported, error.exit_code = True, code
        raise error


def _run(command: Sequence[str], lock: Path) -> int:
    # A recipe that was killed has left a process that saves its work.
    with one_at_a_time(lock, lambda: say("waiting for the process of the interrupted step, which saves its work")):
        return run_module("tolka", command)
