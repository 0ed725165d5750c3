"""Calls of several threads and tasks that run together."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from copying_model import translator

from tolka.search.beam import BeamConfig
from tolka.translation.batching import SharedCalls

TEXTS = [f"{color} birds sing {'. blue fish swim' * (number % 4)}" for number in range(10) for color in ("red", "blue")]


class Work:
    """Returns each job in upper case; the first call waits until it is told to go on."""

    def __init__(self, waits: bool = True) -> None:
        self.calls: list[list[str]] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        if not waits:
            self.go_on.set()

    def __call__(self, jobs: Sequence[str]) -> list[str]:
        self.calls.append(list(jobs))
        self.begun.set()
        self.go_on.wait(20)
        if "bad" in jobs:
            raise ValueError("bad")
        return [job.upper() for job in jobs]


def until(condition: object) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.001)


def test_calls_during_another_one_run_together() -> None:
    work = Work()
    calls = SharedCalls(work, len, 100, 0.0)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(calls.call, "a")
        work.begun.wait(20)
        others = [pool.submit(calls.call, text) for text in "bcdef"]
        until(lambda: len(calls._waiting) == 5)
        work.go_on.set()
        assert [first.result(), *(each.result() for each in others)] == list("ABCDEF")
    assert [sorted(each) for each in work.calls] == [["a"], list("bcdef")]


def test_an_error_reaches_the_caller_that_caused_it() -> None:
    work = Work()
    calls = SharedCalls(work, len, 100, 0.0)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(calls.call, "a")
        work.begun.wait(20)
        others = {text: pool.submit(calls.call, text) for text in ("b", "bad", "c")}
        until(lambda: len(calls._waiting) == 3)
        work.go_on.set()
        assert first.result() == "A"
        assert (others["b"].result(), others["c"].result()) == ("B", "C")
        with pytest.raises(ValueError, match="bad"):
            others["bad"].result()
    with pytest.raises(ValueError, match="bad"):
        calls.call("bad")
    assert calls.call("again") == "AGAIN"


def test_jobs_that_run_together_keep_to_the_ceiling() -> None:
    work = Work()
    calls = SharedCalls(work, len, 4, 0.0)
    first = calls.submit("a")
    work.begun.wait(20)
    others = [calls.submit(text) for text in ("bb", "cc", "d", "eeeeee", "f")]
    work.go_on.set()
    assert [each.result(20) for each in (first, *others)] == ["A", "BB", "CC", "D", "EEEEEE", "F"]
    assert work.calls == [["a"], ["bb", "cc"], ["d"], ["eeeeee"], ["f"]]


def test_a_large_call_runs_by_itself_and_does_not_wait() -> None:
    work = Work()
    calls = SharedCalls(work, len, 4, 0.0)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(calls.call, "a")
        work.begun.wait(20)
        large = pool.submit(calls.call, "large")
        until(lambda: len(work.calls) == 2)
        assert work.calls == [["a"], ["large"]]
        work.go_on.set()
        assert (first.result(), large.result()) == ("A", "LARGE")


def test_a_call_within_a_call_of_the_same_thread_runs_at_once() -> None:
    def work(jobs: Sequence[str]) -> list[str]:
        return [calls.call(job[1:]) if len(job) > 1 else job for job in jobs]

    calls = SharedCalls(work, len, 100, 0.0)
    assert calls.call("abc") == "c"
    assert calls.submit("abc").result(20) == "c"


def test_a_cancelled_job_is_left_out() -> None:
    work = Work()
    calls = SharedCalls(work, len, 100, 0.0)
    first = calls.submit("a")
    work.begun.wait(20)
    cancelled, last = calls.submit("b"), calls.submit("c")
    assert cancelled.cancel()
    work.go_on.set()
    assert (first.result(20), last.result(20)) == ("A", "C")
    assert work.calls == [["a"], ["c"]]


def test_a_thread_that_cannot_be_started_is_an_error_of_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    calls = SharedCalls(Work(waits=False), len, 100, 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            calls.submit("a").result(20)
    assert calls.call("b") == "B"
    assert calls.submit("c").result(20) == "C"


def test_no_thread_is_left() -> None:
    calls = SharedCalls(Work(waits=False), len, 100, 0.0)
    assert calls.submit("a").result(20) == "A"
    until(lambda: "translating" not in {thread.name for thread in threading.enumerate()})
    assert "translating" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("workers", [1, 2])
def test_many_threads_get_what_one_call_gets(workers: int) -> None:
    # The copying model gives all wrong tokens one probability, so that a second hypothesis would be one of many.
    made = translator(BeamConfig(beam_size=3), workers=workers)
    expected = [[each.text for each in found.candidates] for found in made.translate(TEXTS)]
    results: dict[int, list[str]] = {}
    with ThreadPoolExecutor(12) as pool:

        def run(number: int) -> None:
            for _ in range(3):
                [found] = made.translate(TEXTS[number])
                results[number] = [each.text for each in found.candidates]

        list(pool.map(run, range(len(TEXTS))))
    assert [results[number] for number in range(len(TEXTS))] == expected


def test_submitted_jobs_run_in_two_threads_where_that_is_asked_for() -> None:
    """Two jobs that wait for each other end only if they run at the same time."""
    both = threading.Barrier(2)

    def work(jobs: Sequence[int]) -> list[int]:
        both.wait(20)
        return [2 * job for job in jobs]

    calls = SharedCalls(work, lambda job: 1, 1, 0.0, at_once=2)
    futures = [calls.submit(number) for number in (1, 2)]
    assert [future.result(30) for future in futures] == [2, 4]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(calls.call, (3, 4))) == [6, 8]


def test_fifty_tasks_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tolka.translation.translator._WAIT_SECONDS", 1.0)  # for a busy machine
    made = translator(tokens=100_000)
    batches = made.engine.model.batches
    assert isinstance(batches, list)

    async def run() -> list[str]:
        found = await asyncio.gather(*(made.translate_async(f"frogs {number}") for number in range(50)))
        return [each.text for [each] in found]

    assert asyncio.run(run()) == [f"frogs {number}" for number in range(50)]
    # On a CPU a batch has a half for each of two workers.
    assert sum(map(len, batches)) == 50
    assert len(batches) <= 2


def test_what_a_task_asked_for_wrongly_is_its_own_error() -> None:
    made = translator()

    async def run() -> list[object]:
        given = ["frogs", 7, "fish"]
        return await asyncio.gather(*(made.translate_async([text]) for text in given), return_exceptions=True)  # type: ignore[list-item]

    first, error, last = asyncio.run(run())
    assert isinstance(error, TypeError)
    assert [each.text for each in (*first, *last)] == ["frogs", "fish"]  # type: ignore[misc]


def test_each_caller_hears_of_its_own_progress() -> None:
    made = translator()
    counts: dict[str, list[float]] = {"a": [], "b": []}
    calls = [("a", ["red birds", "frogs", ""]), ("b", ["blue fish"])]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda call: made.translate(call[1], tick=counts[call[0]].append), calls))
    assert {name: sum(each) for name, each in counts.items()} == {"a": pytest.approx(3), "b": pytest.approx(1)}
