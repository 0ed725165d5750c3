"""Jobs that reach for something outside, such as a server, and that must not hold training up."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tolka.errors import TolkaError

_WAITS = (1.0, 5.0, 20.0, 60.0)  # seconds before the second, third, ... attempt; the last one repeats
_LAST_WAIT = 1.0  # while the command waits for its end
_DOUBTED_AFTER = 3  # failures of a job, until the one behind it is tried
_ANNOUNCED_AFTER = 5.0  # seconds of waiting for the end
_LONGEST_JOB = 1800.0  # seconds that the end of a command waits for a job that has not failed


@dataclass(eq=False)
class _Job:
    """essential: no later job makes sense without it."""

    run: Callable[[], None]
    essential: bool
    failures: int = 0


class Outbox:
    """Does jobs in order, in a thread of its own; one that raises an exception is tried again until it succeeds.

    A job that still fails where the next one succeeds is at fault itself: it is reported and dropped.
    """

    def __init__(self, name: str, log: Callable[[str], None]) -> None:
        """name: what the jobs reach for, in messages. log: is called with a message, from the thread."""
        self._name, self._write_log = name, log
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closing = self._given_up = False
        self._moved_at = time.monotonic()  # when a job last succeeded
        self.problem = ""
        """Why the first job in the queue failed; "" if it has not been tried, or there is none."""
        # A daemon: a server that does not answer must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def add(self, job: Callable[[], None], essential: bool = False) -> None:
        """Add a job to the queue. essential: no later one makes sense without it."""
        with self._changed:
            self._jobs.append(_Job(job, essential))
            self._changed.notify()

    def close(self, seconds: float, longest_job: float = _LONGEST_JOB) -> int:
        """Wait until every job is done; return how many are not, and never will be.

        Waiting ends when jobs have failed for so many seconds, or when one takes longer than `longest_job`.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        begun = self._moved_at = time.monotonic()
        announced = False
        while self._thread.is_alive():
            self._thread.join(0.05)
            waited = time.monotonic() - self._moved_at
            if waited > (seconds if self.problem else longest_job):
                break
            if not announced and time.monotonic() - begun > _ANNOUNCED_AFTER:
                announced = True
                self._log(f"tracking={self._name}: waiting until {len(self._jobs)} messages are sent (Ctrl-C ends it)")
        self._given_up = True
        return len(self._jobs)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if self._given_up or not self._jobs:
                    return
                head = self._jobs[0]
            if self._succeeds(head) or (head.failures >= _DOUBTED_AFTER and self._is_at_fault(head)):
                continue
            self._pause(_WAITS[min(head.failures, len(_WAITS)) - 1])

    def _succeeds(self, job: _Job) -> bool:
        """Do a job, and take it out of the queue; return whether it succeeded."""
        try:
            job.run()
        except Exception as error:
            job.failures += 1
            self._note(error)
            return False
        if self.problem and job is self._jobs[0]:
            self._log(f"tracking={self._name}: reached again")
            self.problem = ""
        self._moved_at = time.monotonic()
        with self._changed:
            self._jobs.remove(job)
        return True

    def _is_at_fault(self, head: _Job) -> bool:
        """Return whether the job behind the first one succeeds; the first one is then dropped."""
        if head.essential or len(self._jobs) < 2:
            return False
        problem = self.problem
        if not self._succeeds(self._jobs[1]):
            return False
        with self._changed:
            self._jobs.remove(head)
        self._log(f"warning: tracking={self._name}: one message is left out, as it is refused ({problem})")
        self.problem = ""
        return True

    def _note(self, error: Exception) -> None:
        """Keep what went wrong; log the first failure of a row."""
        first = not self.problem
        words = " ".join(f"{type(error).__name__}: {error}".split())
        self.problem = words if len(words) <= 300 else f"{words[:300]}..."
        if first:
            self._log(f"warning: tracking={self._name}: {self.problem}; training goes on, and it is tried again")

    def _log(self, message: str) -> None:
        if not self._given_up:
            with suppress(TolkaError):  # the run's folder is gone, which training reports
                self._write_log(message)

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; when the outbox is closed meanwhile, only briefly."""
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._closing, timeout=seconds)
            closing = self._closing
        if closing:
            time.sleep(max(0.0, min(_LAST_WAIT, until - time.monotonic())))
