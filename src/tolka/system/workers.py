"""Functions called in processes of their own: on several cores, apart from torch, or where Ctrl-C is not heard."""

import os
import pickle
import queue
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from tolka.errors import TolkaError
from tolka.system import interrupts

P = TypeVar("P")
R = TypeVar("R")
_LINES = 1000  # that are sent at a time


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def call(
    function: Callable[..., R],
    *arguments: Any,
    lost: str = "another process of this command ended with {}; the same command goes on",
    lines: Iterable[str] | None = None,
    is_command: bool = False,
) -> R:
    """Call a function of a module in another process; return its result, or raise its error.

    The process ends with this one, however that ends. lines: the function gets an iterator of them as its last
    argument; they are sent while it reads. lost: the words of the TolkaError where the process ends without an answer,
    with {} for how. is_command: whether it writes to this one's stderr, and answers a signal by itself: it gets what is
    sent to this one, and SIGTERM where this one ends, and is waited for.
    """
    with _Worker(function, lost, is_command) as worker:
        answer: R = worker.call(*arguments, lines=lines)
        return answer


def call_each(function: Callable[[P], R], parts: Sequence[P], processes: int, lost: str) -> Iterator[R]:
    """Yield what a function returns for each part, in no order, from so many other processes; with 1, from this one.

    lost: as in `call`.
    """
    if processes < 2:
        yield from map(function, parts)
        return
    idle = queue.SimpleQueue[_Worker]()

    def call_idle(part: P) -> R:
        worker = idle.get()
        try:
            answer: R = worker.call(part)
            return answer
        finally:
            idle.put(worker)

    # If the block ends early, the workers are killed first, and so no thread waits for an answer.
    with ThreadPoolExecutor(processes) as pool, ExitStack() as workers:
        for _ in range(processes):
            idle.put(workers.enter_context(_Worker(function, lost)))
        for done in as_completed([pool.submit(call_idle, part) for part in parts]):
            yield done.result()


def run_module(module: str, arguments: Sequence[str]) -> int:
    """Do what `python -m module` with these arguments does, in a process that does nothing else; return its code."""
    sys.argv[1:] = arguments
    try:
        runpy.run_module(module, run_name="__main__")
    except SystemExit as done:
        return int(done.code or 0)
    return 0


class _Worker:
    """A process that calls one function, as often as it is asked to, and is killed when the block ends.

    A command is not killed: see `call`.
    """

    def __init__(self, function: Callable[..., Any], lost: str, is_command: bool = False) -> None:
        self._lost, self._is_command = lost, is_command
        # A file, which takes any amount: a pipe that nobody reads would stop the process when it is full.
        self._stderr = None if is_command else tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        # Not multiprocessing, which would import the user's own script again. -P: no imports from the current folder,
        # whose files may have the names of modules; what this process finds beside the script is in PYTHONPATH.
        # A session of its own: Ctrl-C and signals to the process group reach this process alone.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import main; main({is_command})"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        self._send(function)

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if not self._is_command:
            self.process.kill()
        else:
            if kind is KeyboardInterrupt:
                self.process.send_signal(interrupts.received() or signal.SIGINT)
            self.process.wait()  # before its standard input is closed, which asks for an end, too
        self.process.communicate()
        if self._stderr:
            self._stderr.close()

    def call(self, *arguments: Any, lines: Iterable[str] | None = None) -> Any:
        """Return the function's result for these arguments; see `call` of this module."""
        self._send((arguments, lines is not None))
        if lines is not None:
            rest = iter(lines)
            while chunk := [*islice(rest, _LINES)]:
                self._send(chunk)
            self._send([])
        assert self.process.stdout is not None
        try:
            is_done, answer = pickle.load(self.process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise TolkaError(self._lost.format(f"{self.process.wait()}: {self._last_words()}")) from None
        if not is_done:
            raise answer
        return answer

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which shows when its answer is read
            # Twice: the thread that receives it imports nothing, as some modules want the main thread for that.
            pickle.dump(pickle.dumps(message), self.process.stdin)
            self.process.stdin.flush()

    def _last_words(self) -> str:
        """Return the last line on the stderr of a process that failed."""
        lines = list[str]()
        if self._stderr:
            self._stderr.seek(0)
            lines = self._stderr.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "killed; was there enough memory?")[:300]


def main(is_command: bool) -> None:
    """Run in a worker: call the function that comes on standard input with the arguments that follow it."""
    for number in interrupts.SIGNALS:
        signal.signal(number, signal.SIG_DFL if is_command else signal.SIG_IGN)
    # However the other process ended: that closes standard input.
    end = partial(os.kill, os.getpid(), signal.SIGTERM) if is_command else partial(os._exit, 1)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the function prints is no answer
    messages = queue.Queue[bytes](8)

    def receive() -> None:
        with suppress(EOFError), open(0, "rb", closefd=False) as stream:
            while True:
                messages.put(pickle.load(stream))
        end()

    def message() -> Any:
        return pickle.loads(messages.get())

    threading.Thread(target=receive, daemon=True).start()
    function = message()
    while True:
        arguments, has_lines = message()
        lines = [chain.from_iterable(iter(message, []))] if has_lines else []
        try:
            answer = True, function(*arguments, *lines)
        except MemoryError:
            raise  # this process has too little for anything else
        except Exception as error:
            error.add_note(traceback.format_exc())
            answer = False, error
        pickle.dump(answer, answers)
        answers.flush()
        if is_command:
            return
