"""The three commands: arguments in, one api call, exit code out. Nothing heavy is imported before it is needed."""

import sys
from types import TracebackType


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C while a command is still being imported is no more than that."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _hook
