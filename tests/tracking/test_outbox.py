"""What reaches for something outside is tried again, in order, and never holds the caller up."""

import threading
from functools import partial

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
    attempts = iter(range(20))
    box = Outbox("wandb", log.append)

    def reach(number: int) -> None:
        if next(attempts) < 6:
            raise ConnectionError("no route\nto host")
        done.append(number)

    box.add(partial(reach, 1))
    box.add(partial(reach, 2))
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
    box.add(unreachable)
    assert box.close(0.2) == 2
    assert box.problem == "ConnectionError: no route to host"


def test_a_job_that_is_refused_is_dropped_when_the_next_one_succeeds() -> None:
    log: list[str] = []
    done: list[int] = []
    box = Outbox("wandb", log.append)

    def refused() -> None:
        raise ValueError("bad name")

    box.add(lambda: done.append(1))
    box.add(refused)
    box.add(lambda: done.append(2))
    box.add(lambda: done.append(3))
    assert box.close(10) == 0
    assert done == [1, 2, 3]
    assert log[-1] == "warning: tracking=wandb: one message is left out, as it is refused (ValueError: bad name)"


def test_nothing_is_done_without_an_essential_job() -> None:
    done: list[int] = []
    box = Outbox("wandb", lambda message: None)

    def unreachable() -> None:
        raise ConnectionError("no route to host")

    box.add(unreachable, essential=True)
    box.add(lambda: done.append(1))
    assert box.close(0.5) == 2
    assert done == []


def test_the_end_waits_for_a_slow_job_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_ANNOUNCED_AFTER", 0.1)
    log: list[str] = []
    waits: list[bool] = []
    box, open_door = Outbox("wandb", log.append), threading.Event()
    box.add(lambda: waits.append(open_door.wait(0.5)))
    assert box.close(0.1) == 0
    assert log == ["tracking=wandb: waiting until 1 messages are sent (Ctrl-C ends it)"]
    box = Outbox("wandb", log.append)
    box.add(lambda: waits.append(open_door.wait(5)))
    assert box.close(0.1, longest_job=0.2) == 1
    open_door.set()


def test_adding_does_not_wait() -> None:
    box, open_door, waited = Outbox("wandb", lambda message: None), threading.Event(), list[bool]()
    box.add(lambda: waited.append(open_door.wait(10)))
    for _ in range(100):
        box.add(lambda: None)
    assert waited == []
    open_door.set()
    assert box.close(10) == 0
    assert waited == [True]
