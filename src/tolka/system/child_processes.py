"""Child processes that do a part of the work: they ignore signals, and end with their parent."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from tolka.system import stopping


@dataclass
class Child:
    """A running child process, and the file that collects its stderr."""

    process: "subprocess.Popen[bytes]"
    words: IO[bytes]

    def reason(self) -> str:
        """Return the last line on its stderr, for one that failed."""
        self.words.seek(0)
        lines = self.words.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "killed; was there enough memory?")[:300]

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()
        self.words.close()


def start(module: str, arguments: Sequence[str] = (), answers: bool = False) -> Child:
    """Run `python -m module` with these arguments and a pipe to its standard input. answers: and from its output."""
    # No multiprocessing: it would import the user's own script anew. -P: nor what lies in the folder they are in.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", module, *arguments]
    words = tempfile.TemporaryFile()  # noqa: SIM115  # closed by end
    output = subprocess.PIPE if answers else subprocess.DEVNULL
    with stopping.held_back():
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=words)
    return Child(process, words)


def end_with_parent() -> None:
    """In a child: end when standard input does, however the parent ended, and ignore Ctrl-C."""
    import signal

    for number in stopping.SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.read(0, 4096):  # sys.stdin has a lock, which Python at its end would not find free
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
