"""Worker threads for computation.

Two of them with one of torch's threads each get more done than one with two: no operation is too small to be divided,
and none waits until all its parts are done.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch


class _Here(Executor):
    """An executor that runs jobs at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the job; an error is raised at once too."""
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class _Threads(ThreadPoolExecutor):
    """Worker threads that start nothing more after an error in one of them."""

    def __init__(self, count: int, share: int) -> None:
        super().__init__(count, initializer=lambda: torch.set_num_threads(share))
        self._failed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a job, unless another one has failed."""
        return super().submit(self._work, fn, *args, **kwargs)

    def _work(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._failed:  # the caller waits in order of submission, and so meets the error that came first
            raise CancelledError
        try:
            return fn(*args, **kwargs)
        except BaseException:
            self._failed = True
            raise


@contextmanager
def side_by_side(count: int) -> Iterator[Executor]:
    """Yield an executor of `count` threads, each with its share of torch's; of one, the caller's own thread.

    If the block ends early, by an error or a signal, work that has not begun is cancelled, and what has is waited for.
    """
    if count == 1:
        yield _Here()
        return
    threads = torch.get_num_threads()
    pool = _Threads(count, max(1, threads // count))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what threads to come start with
