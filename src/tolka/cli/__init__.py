"""The three commands: arguments in, one api call, exit code out. Nothing heavy is imported before it is needed."""

from typing import NoReturn


def mt_train() -> NoReturn:
    """Run `mt-train` in a process of its own."""
    _command("train")


def mt_translate() -> NoReturn:
    """Run `mt-translate` in a process of its own."""
    _command("translate")


def mt_eval() -> NoReturn:
    """Run `mt-eval` in a process of its own."""
    _command("evaluate")


def _command(module: str) -> NoReturn:
    """Run the command of a module in this package; never return."""
    from tolka.system import interrupts

    # Before the imports, which take seconds: Ctrl-C during them is one line too, not a traceback.
    interrupts.handle_signals_until_exit()

    from importlib import import_module

    from tolka.cli.common import own_process

    own_process(import_module(f"tolka.cli.{module}").run)
