"""The process of a recipe's step: a command of tolka, which saves and ends when the recipe's own process does."""

import os
import runpy
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from tolka.system.atomic import one_at_a_time
from tolka.system.child_processes import when_parent_ends
from tolka.system.progress import say

if __name__ == "__main__":
    when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
    lock = sys.argv.pop(1)
    # Beside tolka's own commands, one that is only for recipes.
    own = "tolka.recipes.speed" if sys.argv[1:2] == ["speed"] else "tolka"
    sys.argv[0] = own
    # A recipe that was killed has left a process that saves its work.
    wait = "waiting for the process of the interrupted step, which saves its work"
    with one_at_a_time(Path(lock), lambda: say(wait)) if lock else nullcontext():
        runpy.run_module(own, run_name="__main__")
