"""What asks a training to end: Ctrl-C, and the SIGTERM of a machine that is about to go."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tolka.training.trainer import Trainer


@contextmanager
def stopped_by_signals(trainer: Trainer) -> Iterator[list[int]]:
    """While it lasts, SIGINT and SIGTERM end the training after the update at work; gives the signals received.

    A second one acts at once, as it would without us. Outside the main thread Python hands out no signals.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def stop(number: int, frame: object) -> None:
        received.append(number)
        trainer.stop(f"{signal.Signals(number).name} received")
        signal.signal(number, before[number])

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
