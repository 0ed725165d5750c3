"""Run a command within this process, which is then as it was before."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence

from tolka.cli.common import exit_code
from tolka.system import interrupts


def guarded(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Return the exit code of a command, as `exit_code`; signal handlers, environment and loggers come back."""
    hooks, environment, log = (sys.excepthook, sys.unraisablehook), dict(os.environ), logging.getLogger()
    handlers, level = list(log.handlers), log.level  # Hydra and the trackers configure the root logger
    path = list(sys.path)
    interrupts.install_hooks()
    replaced = interrupts.listen()
    try:
        return exit_code(command, arguments)
    finally:
        interrupts._received.clear()
        interrupts._swallowed.clear()
        for number, handler in replaced.items():
            signal.signal(number, handler)
        sys.excepthook, sys.unraisablehook = hooks
        log.handlers[:] = handlers
        log.setLevel(level)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        sys.path[:] = path
