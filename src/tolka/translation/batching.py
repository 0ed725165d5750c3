"""Run the calls of several threads and tasks together, so that small ones share a batch."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class SharedCalls(Generic[J, R]):
    """Calls of one function, which takes the jobs of several callers at once.

    A call runs at once, in the caller's thread, unless another one is running. Those that come meanwhile wait, and run
    together afterwards. So a single caller has no delay, and of many each waits for one other batch, unless their jobs
    exceed `most`. No thread exists while nobody waits.
    """

    def __init__(
        self, work: Callable[[Sequence[J]], list[R]], size: Callable[[J], int], most: int, wait_seconds: float
    ) -> None:
        """work: returns a result for each job. size: returns that of a job. most: ceiling on the sizes together.

        wait_seconds: how long a submitted job waits for others. A job of more than `most` runs by itself.
        """
        self._work, self._size, self._most, self._wait_seconds = work, size, most, wait_seconds
        self._lock = threading.Lock()
        self._waiting: deque[tuple[J, Future[R]]] = deque()
        self._runner: int | None = None  # the thread that runs jobs, by its ident; None while nothing runs

    def call(self, job: J) -> R:
        """Return the result of a job, run alone or with those of other threads; raise its own error."""
        thread = threading.get_ident()
        with self._lock:
            # A job that another job of the same thread calls would wait for itself: a callback may translate.
            apart = self._size(job) > self._most or self._runner == thread
            waits = not apart and self._runner is not None
            if waits:
                self._waiting.append((job, future := Future[R]()))
            elif not apart:
                self._runner = thread
        if waits:  # outside the lock, or nobody could run the job
            return future.result()
        try:
            (result,) = self._work([job])
            return result
        finally:
            if not apart:
                self._hand_over()

    def submit(self, job: J) -> Future[R]:
        """Return a future of the job's result at once; the job waits up to wait_seconds for others."""
        future = Future[R]()
        with self._lock:
            self._waiting.append((job, future))
            if self._runner is None:
                self._start()
        return future

    def _hand_over(self) -> None:
        """Start a thread for the jobs that have come meanwhile: this caller has its own result and returns."""
        with self._lock:
            self._runner = None
            if self._waiting:
                self._start()

    def _start(self) -> None:
        """Start a thread that runs what waits; the caller holds the lock."""
        # Not a daemon: the interpreter waits for it at its end, so that no future is left without a result.
        thread = threading.Thread(target=self._run_waiting, name="translating", daemon=False)
        self._runner = 0  # the ident of no thread: later callers wait, although the new thread has not begun
        try:
            thread.start()
        except RuntimeError as error:  # the system allows no more threads
            self._runner = None
            while self._waiting:
                self._waiting.popleft()[1].set_exception(error)

    def _run_waiting(self) -> None:
        """Run what waits, until nothing does."""
        with self._lock:
            self._runner = threading.get_ident()
        while True:
            time.sleep(self._wait_seconds)
            with self._lock:
                batch = self._next_batch()
                if not batch:
                    self._runner = None  # under the lock: a later job starts a thread of its own
                    return
            self._run([each for each in batch if each[1].set_running_or_notify_cancel()])

    def _next_batch(self) -> list[tuple[J, Future[R]]]:
        """Remove and return the jobs to run next: the first ones up to `most`, and at least one if any waits."""
        batch: list[tuple[J, Future[R]]] = []
        size = 0
        while self._waiting and (not batch or size + self._size(self._waiting[0][0]) <= self._most):
            batch.append(self._waiting.popleft())
            size += self._size(batch[-1][0])
        return batch

    def _run(self, batch: Sequence[tuple[J, Future[R]]]) -> None:
        """Set the results of jobs. After an error each runs by itself, so that only its own caller receives one."""
        if not batch:
            return
        try:
            results = self._work([job for job, _ in batch])
        except BaseException as error:  # KeyboardInterrupt too: a caller waits for the future
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            for each in batch:
                self._run([each])
            return
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result(result)
