"""Signals that ask a command to end: one exception, one line, exit code 128 + the signal's number.

SIGINT (Ctrl-C), SIGTERM (a machine that is about to go), SIGHUP (the terminal was closed).
"""

import atexit
import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, NoReturn

from tolka.system.surrogates import printable

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
SAME_SECONDS = 1.0  # timeout(1) and other wrappers send a signal twice: to the process, and to its group

_received: list[tuple[int, float]] = []  # number and time of the first; global, since signals go to the process
# The exception of the first signal was lost; the process is exiting.
_swallowed, _leaving = threading.Event(), threading.Event()


def listen() -> dict[int, Any]:
    """Make each of these signals raise KeyboardInterrupt in the main thread; return the handlers that this replaced.

    Ignored signals stay ignored, and a program's own handlers stay as well.
    """
    if threading.current_thread() is not threading.main_thread():  # where Python sets no handlers
        return {}
    # nohup ignores SIGHUP, and a shell SIGINT of a script's background job: both mean that the process shall continue.
    numbers = [number for number in SIGNALS if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)]
    return {number: signal.signal(number, _raise) for number in numbers}


def received() -> int:
    """Return the signal that requested the end, even if its exception was swallowed; 0 if there was none."""
    return _received[0][0] if _received else 0


def check() -> None:
    """Raise KeyboardInterrupt if a signal came whose exception was swallowed; to be called between stages."""
    if _received:
        raise KeyboardInterrupt


def is_repeated(since: float) -> bool:
    """Return whether a signal received now only repeats the one received at `since` (time.monotonic)."""
    return time.monotonic() - since < SAME_SECONDS


def _raise(number: int, frame: FrameType | None) -> None:
    """Handle a signal. A second one, during the clean-up after the first, ends the process at once."""
    if _received and not _swallowed.is_set():
        if is_repeated(_received[0][1]):
            return
        # Not sys.exit: the clean-up may be what hangs, and the user asks for the second time.
        print_last_line(f"{last_line(number)} again: ended at once")
        os._exit(128 + number)
    _swallowed.clear()
    _received[:] = _received or [(number, time.monotonic())]
    if not _leaving.is_set():
        raise KeyboardInterrupt


def last_line(number: int) -> str:
    """Return the beginning of the last line of a command that this signal ended."""
    return "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"


def print_last_line(line: str) -> None:
    """Print on stderr, in place of a progress bar, unless the terminal is closed or the disk is full."""
    if sys.stderr is None:
        return
    try:
        # To the beginning of the line, and clear it.
        print("\r\x1b[K" if sys.stderr.isatty() else "", printable(line), sep="", file=sys.stderr, flush=True)
    except OSError:
        # Discards what is buffered: Python fails to flush it again at exit, and makes the exit code 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    except ValueError:  # stderr is closed
        pass


def exit_process(code: int) -> NoReturn:
    """End the process with this exit code; one more signal is ignored, a second one ends the process at once."""
    _leaving.set()
    sys.exit(code)


def handle_signals_until_exit() -> None:
    """Handle these signals from now on until the end of a process that does nothing else."""
    atexit.register(_ignore)  # what is registered first is called last
    install_hooks()
    listen()


def install_hooks() -> None:
    """Install hooks that turn a signal during the import of a command into one line and an exit code."""
    sys.excepthook = _excepthook
    sys.unraisablehook = _unraisablehook


def _ignore() -> None:
    """Ignore the signals for the rest of the process."""
    # Python removes its handlers at exit, and a signal would then end the process with -15 instead of its own code.
    for number in SIGNALS:
        if signal.getsignal(number) is _raise:
            signal.signal(number, signal.SIG_IGN)


def _excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    number = received() or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else 0)
    if not number:
        sys.__excepthook__(kind, error, trace)
        return
    print_last_line(last_line(number))
    os._exit(128 + number)  # Python would exit with 1; there is nothing to clean up yet


def _unraisablehook(lost: Any) -> None:
    """Send a signal again whose exception was lost in a destructor or in a callback of C code."""
    if isinstance(lost.exc_value, KeyboardInterrupt) and received():
        _swallowed.set()
        # A moment later, when the main thread has left that destructor.
        again = threading.Timer(0.02, _send, [received()])
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


def _send(number: int) -> None:
    """Send a signal to the main thread."""
    # It may be asleep, and a signal to another thread would not wake it.
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)
