"""The process of a recipe's step: a command of tolka, which saves and ends when the recipe's own process does."""

import os
import runpy
import signal
import sys

from tolka.system.child_processes import when_parent_ends

if __name__ == "__main__":
    when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    # Beside tolka's own commands, one that is only for recipes.
    own = "tolka.recipes.speed" if sys.argv[1:2] == ["speed"] else "tolka"
    sys.argv[0] = own
    runpy.run_module(own, run_name="__main__")
