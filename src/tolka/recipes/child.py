"""The process of a recipe's step: a command of tolka, which saves and ends when the recipe's own process does."""

import os
import runpy
import signal
import sys
import threading


def _end_with_parent() -> None:
    """Wait for the end of standard input, which the parent holds open, and then ask this process to end."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Beside tolka's own commands, one that is only for recipes.
    own = "tolka.recipes.speed" if sys.argv[1:2] == ["speed"] else "tolka"
    sys.argv[0] = own
    runpy.run_module(own, run_name="__main__")
