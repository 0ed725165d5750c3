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

    Ignored signals stay ignored: SIGHUP under nohup. Outside the main thread Python delivers no signals.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    asked_at = 0.0

    def stop(number: int, frame: object) -> None:
        nonlocal asked_at
        if not received:
            asked_at = time.monotonic()
            received.append(number)
            trainer.stop(f"{signal.Signals(number).name} received")
        elif not interrupts.is_repeated(asked_at):
            signal.signal(number, previous[number])
            signal.raise_signal(number)

    def save(number: int, frame: object) -> None:
        trainer.save_soon()

    handlers: dict[int, Any] = dict.fromkeys(interrupts.SIGNALS, stop)
    if hasattr(signal, "SIGUSR1"):
        handlers[signal.SIGUSR1] = save
    previous: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
    handled = [number for number, handler in previous.items() if handler not in (signal.SIG_IGN, None)]
    for number in handled:
        signal.signal(number, handlers[number])
    try:
        yield received
    finally:
        for number in handled:
            signal.signal(number, previous[number])
