"""Run the calls of several threads and tasks together, so that small ones share a batch."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class SharedCalls(Generic[J, R]):
    """Calls of one function, which takes the jobs of several callers at once.

    A call runs at once, in the caller's thread, unless another one is running. Those that come meanwhile wait, and the
    first of them that may go on runs all of them together. So a single caller has no delay, and of many each waits for
    one other batch, unless their jobs exceed `most`. No thread exists while nobody waits.
    """

    def __init__(
        self,
        work: Callable[[Sequence[J]], list[R]],
        size: Callable[[J], int],
        most: int,
        wait_seconds: float,
        at_once: int = 1,
    ) -> None:
        """work: returns a result for each job. size: returns that of a job. most: ceiling on the sizes together.

        wait_seconds: how long a submitted job waits for others. at_once: threads that run submitted jobs; of more than
        one, calls wait for nobody. A job of more than `most` runs by itself.
        """
        self._work, self._size, self._most, self._wait_seconds = work, size, most, wait_seconds
        self._lock = threading.Lock()  # of what follows
        self._waiting: deque[tuple[J, Future[R]]] = deque()
        self._threads, self._at_once = 0, at_once  # that run submitted jobs
        # While jobs run. A job may call another one in the same thread: a callback may translate.
        self._running: AbstractContextManager[Any] = threading.RLock() if at_once == 1 else nullcontext()

    def call(self, job: J) -> R:
        """Return the result of a job, run alone or with those of other threads; raise its own error."""
        if self._size(job) > self._most:
            (result,) = self._work([job])
            return result
        future = Future[R]()
        with self._lock:
            self._waiting.append((job, future))
        with self._running:
            while not future.done() and (batch := self._next_batch()):
                self._run(batch)
        return future.result()

    def submit(self, job: J) -> Future[R]:
        """Return a future of the job's result at once; the job waits up to wait_seconds for others.

        RuntimeError where the system allows no more threads.
        """
        future = Future[R]()
        with self._lock:
            if self._threads < self._at_once:
                # Not a daemon: the interpreter waits for it at its end, so that no future is left without a result.
                thread = threading.Thread(target=self._run_waiting, name="translating", daemon=False)
                thread.start()
                self._threads += 1
            self._waiting.append((job, future))
        return future

    def _run_waiting(self) -> None:
        """Run what waits, until nothing does."""
        while True:
            time.sleep(self._wait_seconds)
            with self._running:
                self._run(self._next_batch())
            with self._lock:
                if not self._waiting:
                    self._threads -= 1  # under the lock: a later job starts a thread of its own
                    return

    def _next_batch(self) -> list[tuple[J, Future[R]]]:
        """Remove and return the jobs to run next: the first ones up to `most`, and at least one if any waits."""
        batch: list[tuple[J, Future[R]]] = []
        size = 0
        with self._lock:
            while self._waiting and (not batch or size + self._size(self._waiting[0][0]) <= self._most):
                batch.append(self._waiting.popleft())
                size += self._size(batch[-1][0])
        return [each for each in batch if each[1].set_running_or_notify_cancel()]

    def _run(self, batch: Sequence[tuple[J, Future[R]]]) -> None:
        """Set the results of jobs. After an error each runs by itself, so that only its own caller receives one."""
        if not batch:
            return
        try:
            results = self._work([job for job, _ in batch])
        except BaseException as error:  # KeyboardInterrupt too, of which every caller hears
            if len(batch) > 1 and isinstance(error, Exception):
                for each in batch:
                    self._run([each])
            else:
                for _, future in batch:
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result(result)
