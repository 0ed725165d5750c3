"""Threads that calculate side by side.

Two of them with one of torch's threads each get more done than one with two: no operation is too small to be divided,
and none waits until all its parts are done.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch


class _Here(Executor):
    """Whatever it is given is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See Executor.submit; an error is raised at once too."""
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def side_by_side(count: int) -> Iterator[Executor]:
    """So many threads, each with its share of those that torch calculates with; one is the caller's own, with all.

    What has not begun when a block ends early, by an error or the user's hand, is not begun.
    """
    if count == 1:
        yield _Here()
        return
    threads = torch.get_num_threads()
    share = max(1, threads // count)
    pool = ThreadPoolExecutor(count, initializer=lambda: torch.set_num_threads(share))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what threads to come start with
