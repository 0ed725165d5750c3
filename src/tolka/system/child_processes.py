"""Commands in child processes, and what these do when their parent ends."""

import os
import sys
import threading
from collections.abc import Callable, Sequence


def module_command(module: str, arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs `python -m module` as this process would, and its environment."""
    # Not multiprocessing, which would import the user's own script again. -P: no imports from the current folder, whose
    # files may have the names of modules; what this process finds beside the script is in PYTHONPATH.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return [sys.executable, "-P", "-m", module, *arguments], environment


def when_parent_ends(act: Callable[[], object]) -> None:
    """Call `act` in another thread when standard input ends, which the parent holds open, however that one ended."""

    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin, whose lock would be taken when Python exits
            pass
        act()

    threading.Thread(target=watch, daemon=True).start()
