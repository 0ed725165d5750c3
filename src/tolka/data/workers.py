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

_SECONDS_BETWEEN_LOOKS = 0.1


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shard_folders(work: Path) -> list[Path]:
    """Return the shards of a text, in order."""
    return sorted(path for path in work.glob("shard-*") if path.is_dir())


def work_on(work: Path, step: str, processes: int, done: Callable[[Shard], object]) -> None:
    """Run a step, `clean` or `encode`, on every shard of `work`.

    processes: at most so many; none is started where there is but one shard. done: called with each shard as it is
    ready. TolkaError when a process dies.
    """
    waiting = []
    for folder in shard_folders(work):
        shard = Shard(folder)
        if _is_done(shard, step):
            done(shard)
        else:
            waiting.append(shard)
    count = min(processes, len(waiting))
    if count < 2:
        _do(work, step, [shard.folder.name for shard in waiting], done)
        return
    names = [shard.folder.name for shard in waiting]
    running: list[Child] = []
    try:
        for first in range(count):
            running.append(_start(work, step, names[first::count]))
        while waiting:
            alive = any(worker.process.poll() is None for worker in running)
            ready = [shard for shard in waiting if _is_done(shard, step)]
            for shard in ready:
                done(shard)
                waiting.remove(shard)
            if waiting and not ready:
                for worker in sorted(running, key=lambda worker: not worker.process.poll()):  # first those that failed
                    _complain(worker, anyway=not alive)
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for worker in running:
            worker.end()


def _is_done(shard: Shard, step: str) -> bool:
    return shard.cleaned if step == "clean" else shard.encoded


def _do(work: Path, step: str, names: Sequence[str], done: Callable[[Shard], object]) -> None:
    """Run the step on these shards, one after the other."""
    task = Task.load(work)
    tokenizer = Tokenizer.load(work) if step == "encode" else None
    for name in names:
        shard = Shard(work / name)
        if tokenizer is None:
            shard.clean(task)
        else:
            shard.encode(task, tokenizer)
        done(shard)


def _complain(worker: Child, anyway: bool) -> None:
    """Raise TolkaError if the process failed; `anyway` if it should not have ended at all."""
    code = worker.process.poll()
    if code or (anyway and code is not None):
        raise TolkaError(
            f"a process that prepared the text ended with {code}: {worker.reason()}. The same command goes on from "
            "there; run.processes=1 needs the least memory"
        )


def _start(work: Path, step: str, names: Sequence[str]) -> Child:
    return start(__name__, [str(work), step, *names])


def main(arguments: Sequence[str]) -> None:
    """Run one process's share: folder, step, names of shards."""
    end_with_parent()
    work, step, *names = arguments
    with naming(Path(work)):
        _do(Path(work), step, names, lambda shard: None)


if __name__ == "__main__":
    main(sys.argv[1:])
