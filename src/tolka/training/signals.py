"""Signals during training: those that end a command, and SIGUSR1, which saves."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tolka.system import interrupts
from tolka.training.trainer import Trainer


@contextmanager
def listening_to_signals(trainer: Trainer) -> Iterator[list[int]]:
    """Let SIGINT, SIGTERM and SIGHUP end training after the current update; yield those received.

    A second signal acts at once. SIGUSR1, where the system has it, saves `last/` and training continues.
    """
    received: list[int] = []
    # Python delivers signals to the main thread alone, and lets no other set a handler.
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    asked_at = 0.0

    def stop(number: int, frame: object) -> None:
        nonlocal asked_at
        # The first one only asks; the trainer saves `last/` after the current update.
        if not received:
            asked_at = time.monotonic()
            received.append(number)
            trainer.stop(f"{signal.Signals(number).name} received")
        # Wrappers send a signal twice, to the process and to its group; a later one ends the process at once.
        elif not interrupts.is_repeated(asked_at):
            signal.signal(number, previous[number])
            signal.raise_signal(number)

    handlers: dict[int, Any] = dict.fromkeys(interrupts.SIGNALS, stop)
    if hasattr(signal, "SIGUSR1"):
        handlers[signal.SIGUSR1] = lambda number, frame: trainer.save_soon()
    previous: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
    # Ignored signals stay ignored: SIGHUP under nohup. None: a handler that was not set from Python.
    handled = [number for number, handler in previous.items() if handler not in (signal.SIG_IGN, None)]
    for number in handled:
        signal.signal(number, handlers[number])
    try:
        yield received
    finally:
        for number in handled:
            signal.signal(number, previous[number])
