"""The commands: arguments in, one api call, exit code out. Nothing heavy is imported before it is needed."""

from functools import partial
from typing import NoReturn


def _run_command(module: str) -> NoReturn:
    """Run the command of a module in this package, in a process of its own."""
    from tolka.system import interrupts

    # Before the imports, which take seconds: Ctrl-C during them is one line too, not a traceback.
    interrupts.handle_signals_until_exit()

    from importlib import import_module

    from tolka.cli.common import own_process

    own_process(import_module(f"tolka.cli.{module}").run)


mt_train = partial(_run_command, "train")
mt_translate = partial(_run_command, "translate")
mt_eval = partial(_run_command, "evaluate")
mt_serve = partial(_run_command, "serve")
