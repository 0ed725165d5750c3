"""Threads that calculate side by side.

Two of them with one of torch's threads each get more done than one with two: no operation is too small to be divided,
and none waits until all its parts are done.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
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


class _Threads(ThreadPoolExecutor):
    """They can be stopped in the middle of their work, within an operation; after an error none begins anything."""

    def __init__(self, count: int, share: int) -> None:
        super().__init__(count, initializer=lambda: torch.set_num_threads(share))
        self._at_work: set[int] = set()
        self._failed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See Executor.submit."""
        return super().submit(self._work, fn, *args, **kwargs)

    def _work(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self._failed:  # what failed was given before this, so that whoever waits in turn is told of it first
            raise CancelledError
        self._at_work.add(threading.get_ident())
        try:
            return fn(*args, **kwargs)
        except BaseException:
            self._failed = True
            raise
        finally:
            self._at_work.discard(threading.get_ident())

    def stop(self) -> None:
        """An error is raised in those that are at work, as Python raises one for Ctrl-C in the main thread."""
        for number in tuple(self._at_work):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(KeyboardInterrupt))


@contextmanager
def side_by_side(count: int) -> Iterator[Executor]:
    """So many threads, each with its share of those that torch calculates with; one is the caller's own, with all.

    When a block ends early, by an error or the user's hand, they are stopped.
    """
    if count == 1:
        yield _Here()
        return
    threads = torch.get_num_threads()
    pool = _Threads(count, max(1, threads // count))
    try:
        yield pool
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what threads to come start with
