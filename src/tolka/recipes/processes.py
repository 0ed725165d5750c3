"""Commands of tolka in processes of their own, so that memory is given back when they end."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tolka.errors import StoppedError, TolkaError
from tolka.system import interrupts
from tolka.system.child_processes import module_command


def run_tolka(command: Sequence[str], answers: bool = False, lock: str | Path = "") -> bytes:
    """Run `python -m tolka` with these arguments, writing to our stderr; return its output if it answers.

    lock: a file that one such process at a time has; others wait. A signal is passed on, and however this process ends,
    the other one saves its work and ends, too. StoppedError where that one was ended by a signal, and TolkaError, which
    it has reported, where it failed.
    """
    line, environment = module_command("tolka.recipes.child", [str(lock), *command])
    process = subprocess.Popen(
        line,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else None,
        start_new_session=True,  # Ctrl-C reaches this process, which passes it on once
    )
    try:
        # Not communicate(), which would close its standard input: that tells it to end.
        output = process.stdout.read() if process.stdout else b""
        code = process.wait()
    except KeyboardInterrupt:
        process.send_signal(interrupts.received() or signal.SIGINT)
        process.wait()
        raise
    finally:
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
    if code > 128 or code < 0:
        raise StoppedError("stopped; the same command goes on", code if code > 0 else 128 - code)
    if code:
        error = TolkaError(f"tolka {command[0]} failed")
        error.reported, error.exit_code = True, code
        raise error
    return output
