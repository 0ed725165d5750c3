"""Child processes that do a part of the work: they ignore signals, and end with their parent."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from tolka.system import interrupts


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass
class Child:
    """A running child process, and the file that collects its stderr."""

    process: "subprocess.Popen[bytes]"
    stderr: IO[bytes]

    def reason(self) -> str:
        """Return the last line on the stderr of a child that failed."""
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "killed; was there enough memory?")[:300]

    def end(self) -> None:
        """Kill the process and close its files."""
        self.process.kill()
        self.process.communicate()
        self.stderr.close()


def module_command(module: str, arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs `python -m module` as this process would, and its environment."""
    # Not multiprocessing, which would import the user's own script again. -P: no imports from the current folder, whose
    # files may have the names of modules; what this process finds beside the script is in PYTHONPATH.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return [sys.executable, "-P", "-m", module, *arguments], environment


def start(module: str, arguments: Sequence[str] = (), answers: bool = False) -> Child:
    """Run `python -m module` with a pipe to its standard input. answers: whether its output is a pipe as well."""
    command, environment = module_command(module, arguments)
    # A file, which takes any amount: a pipe that nobody reads would stop the child when it is full.
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end
    output = subprocess.PIPE if answers else subprocess.DEVNULL
    # A session of its own: Ctrl-C and signals to the process group reach the parent alone, which ends its children.
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=stderr, start_new_session=True
    )
    return Child(process, stderr)


def end_with_parent() -> None:
    """End this child when its standard input does, however the parent ended, and ignore signals until then."""
    import signal

    for number in interrupts.SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    when_parent_ends(lambda: os._exit(1))


def when_parent_ends(act: Callable[[], object]) -> None:
    """Call `act` in another thread when standard input ends, which the parent holds open, however that one ended."""

    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin, whose lock would be taken when Python exits
            pass
        act()

    threading.Thread(target=watch, daemon=True).start()
