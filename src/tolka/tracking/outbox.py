"""Jobs that reach for something outside, such as a server, and that must not hold training up."""

import threading
import time
from collections import deque
from collections.abc import Callable

_WAITS = (1.0, 5.0, 20.0, 60.0)  # seconds before the second, third, ... attempt; the last one repeats
_LAST_WAIT = 1.0  # while the command waits for its end


class Outbox:
    """Does jobs in order, in a thread of its own; one that raises an exception is tried again until it succeeds."""

    def __init__(self, name: str, log: Callable[[str], None]) -> None:
        """name: what the jobs reach for, in messages. log: is called with a message, from the thread."""
        self._name, self._log = name, log
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._closing = self._given_up = False
        self.problem = ""
        """Why the first job in the queue failed; "" if it has not been tried, or there is none."""
        # A daemon: a server that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def add(self, job: Callable[[], None]) -> None:
        """Add a job to the queue."""
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()

    def close(self, seconds: float) -> int:
        """Wait until every job is done, but at most so long; return how many are not, and never will be."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(seconds)
        self._given_up = True
        return len(self._jobs)

    def _work(self) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if self._given_up or not self._jobs:
                    return
                job = self._jobs[0]
            try:
                job()
            except Exception as error:
                self._report(error)
                self._pause(_WAITS[min(failures, len(_WAITS) - 1)])
                failures += 1
            else:
                if failures:
                    self._log(f"tracking={self._name}: reached again")
                failures, self.problem = 0, ""
                with self._changed:
                    self._jobs.popleft()

    def _report(self, error: Exception) -> None:
        """Log the first failure of a row."""
        first = not self.problem
        words = " ".join(f"{type(error).__name__}: {error}".split())
        self.problem = words if len(words) <= 300 else f"{words[:300]}..."
        if first:
            self._log(f"warning: tracking={self._name}: {self.problem}; training goes on, and it is tried again")

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; when the outbox is closed meanwhile, only briefly."""
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._closing, timeout=seconds)
            closing = self._closing
        if closing:
            time.sleep(max(0.0, min(_LAST_WAIT, until - time.monotonic())))
