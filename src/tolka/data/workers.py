"""Cleaning and encoding shards in several processes, with the same result as in one."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tolka.data.shards import Shard, Task
from tolka.errors import TolkaError
from tolka.system.atomic import naming
from tolka.system.child_processes import Child, end_with_parent, start
from tolka.text.tokenizer.tokenizer import Tokenizer

_POLL_SECONDS = 0.1


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shard_folders(work: Path) -> list[Path]:
    """Return the folders of a text's shards, in order."""
    return sorted(path for path in work.glob("shard-*") if path.is_dir())


def work_on(work: Path, step: str, processes: int, on_done: Callable[[Shard], object]) -> None:
    """Run a step, `clean` or `encode`, on every shard of `work`.

    processes: maximum number of processes; with 1, or for a single shard, none is started. on_done: called with each
    shard when it is done. TolkaError when a process dies.
    """
    waiting = []
    for folder in shard_folders(work):
        shard = Shard(folder)
        if _is_done(shard, step):
            on_done(shard)
        else:
            waiting.append(shard)
    count = min(processes, len(waiting))
    if count < 2:
        _process(work, step, [shard.folder.name for shard in waiting], on_done)
        return
    names = [shard.folder.name for shard in waiting]
    workers: list[Child] = []
    try:
        for first in range(count):
            workers.append(_start(work, step, names[first::count]))
        while waiting:
            alive = any(worker.process.poll() is None for worker in workers)
            ready = [shard for shard in waiting if _is_done(shard, step)]
            for shard in ready:
                on_done(shard)
                waiting.remove(shard)
            if waiting and not ready:
                for worker in sorted(workers, key=lambda worker: not worker.process.poll()):  # the failed ones first
                    _raise_if_failed(worker, none_alive=not alive)
                time.sleep(_POLL_SECONDS)
    finally:
        for worker in workers:
            worker.end()


def _is_done(shard: Shard, step: str) -> bool:
    return shard.cleaned if step == "clean" else shard.encoded


def _process(work: Path, step: str, names: Sequence[str], on_done: Callable[[Shard], object]) -> None:
    """Run the step on these shards, one after the other."""
    task = Task.load(work)
    tokenizer = Tokenizer.load(work) if step == "encode" else None
    for name in names:
        shard = Shard(work / name)
        if tokenizer is None:
            shard.clean(task)
        else:
            shard.encode(task, tokenizer)
        on_done(shard)


def _raise_if_failed(worker: Child, none_alive: bool) -> None:
    """Raise TolkaError if the process failed. none_alive: also if it ended without an error, as no worker is left."""
    code = worker.process.poll()
    if code or (none_alive and code is not None):
        raise TolkaError(
            f"a process that prepared the text ended with {code}: {worker.reason()}. The same command goes on from "
            "there; run.processes=1 needs the least memory"
        )


def _start(work: Path, step: str, names: Sequence[str]) -> Child:
    return start(__name__, [str(work), step, *names])


def main(arguments: Sequence[str]) -> None:
    """Run in a worker process. arguments: folder, step, names of shards."""
    end_with_parent()
    work, step, *names = arguments
    with naming(Path(work)):
        _process(Path(work), step, names, lambda shard: None)


if __name__ == "__main__":
    main(sys.argv[1:])
