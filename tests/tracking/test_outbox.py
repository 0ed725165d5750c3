"""What reaches for something outside is tried again, in order, and never holds the caller up."""

import threading

import pytest

from tolka.tracking import outbox
from tolka.tracking.outbox import Outbox


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_WAITS", (0.01,))
    monkeypatch.setattr(outbox, "_LAST_WAIT", 0.01)


def test_a_failing_job_is_tried_again_and_the_order_kept() -> None:
    log: list[str] = []
    done: list[int] = []
    attempts = iter(range(10))
    box = Outbox("wandb", log.append)

    def unreachable() -> None:
        if next(attempts) < 3:
            raise ConnectionError("no route\nto host")
        done.append(1)

    box.add(unreachable)
    box.add(lambda: done.append(2))
    assert box.close(10) == 0
    assert done == [1, 2]
    assert log == [
        "warning: tracking=wandb: ConnectionError: no route to host; training goes on, and it is tried again",
        "tracking=wandb: reached again",
    ]


def test_what_is_not_done_in_time_is_counted() -> None:
    box = Outbox("wandb", lambda message: None)

    def unreachable() -> None:
        raise ConnectionError("no route to host")

    box.add(unreachable)
    box.add(lambda: None)
    assert box.close(0.2) == 2
    assert box.problem == "ConnectionError: no route to host"


def test_adding_does_not_wait() -> None:
    box, open_door, waited = Outbox("wandb", lambda message: None), threading.Event(), list[bool]()
    box.add(lambda: waited.append(open_door.wait(10)))
    for _ in range(100):
        box.add(lambda: None)
    assert waited == []
    open_door.set()
    assert box.close(10) == 0
    assert waited == [True]
