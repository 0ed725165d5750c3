"""Worker threads for computation."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch

_WITH_WORKERS = threading.Lock()


class _InlineExecutor(Executor):
    """An executor that runs jobs at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the job at once; its error is raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def side_by_side(count: int) -> Iterator[Executor]:
    """Yield an executor of `count` threads, each with its share of torch's; of one, the caller's own thread.

    Of several threads that call it at the same time with a count above 1, one has workers; the others compute in their
    own threads. If the block ends early, by an error or a signal, queued jobs are cancelled, and running ones awaited.
    """
    # Two workers with one torch thread each are faster than one with two: small operations are not divided among
    # threads, and no operation waits for the slowest of its parts.
    # The number of torch's threads is one for the process: a second caller would read the share of the first's workers.
    if count == 1 or not _WITH_WORKERS.acquire(blocking=False):
        yield _InlineExecutor()
        return
    try:
        threads = torch.get_num_threads()
        pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(max(1, threads // count),))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)  # the default for new threads
    finally:
        _WITH_WORKERS.release()
