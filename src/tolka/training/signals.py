"""What asks a training to end or to save: Ctrl-C, the SIGTERM of a machine that is about to go, and SIGUSR1."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tolka.training.trainer import Trainer


@contextmanager
def listening_to_signals(trainer: Trainer) -> Iterator[list[int]]:
    """While it lasts, SIGINT and SIGTERM end the training after the update at work; gives those received.

    A second one acts at once, as it would without us. SIGUSR1, where the system has it, saves `last/` and goes on.
    Outside the main thread Python hands out no signals.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def stop(number: int, frame: object) -> None:
        received.append(number)
        trainer.stop(f"{signal.Signals(number).name} received")
        signal.signal(number, before[number])

    def save(number: int, frame: object) -> None:
        trainer.save_soon()

    handlers: dict[int, Any] = {signal.SIGINT: stop, signal.SIGTERM: stop}
    if hasattr(signal, "SIGUSR1"):
        handlers[signal.SIGUSR1] = save
    before: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        signal.signal(number, handler)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
