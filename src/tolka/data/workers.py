"""Cleaning and encoding shards in several processes, and by several makers, with the same result as in one."""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tolka.data.shards import Shard, Task
from tolka.errors import TolkaError
from tolka.system.atomic import naming, replace_text
from tolka.system.child_processes import Child, end_with_parent, start
from tolka.system.claims import Member
from tolka.text.tokenizer.tokenizer import Tokenizer

PLAN = "read.json"
"""Name of the file that `save_plan` writes."""
_POLL_SECONDS = 0.1


def process_count(asked: int) -> int:
    """Return how many processes this one may start. asked: run.processes; 0 = one for each core that it may use.

    The processes of one training on this machine divide them.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, (asked or cores) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def save_plan(work: Path, entries: Sequence[Sequence[int]], pairs: Sequence[int]) -> None:
    """Save how the text was divided, when all of it was read; see `load_plan`."""
    replace_text(work / PLAN, json.dumps({"entries": entries, "pairs": pairs}))


def load_plan(work: Path) -> tuple[list[list[int]], list[Shard]]:
    """Return the [first, last) shard of each entry of corpus.train, and all shards."""
    facts = json.loads((work / PLAN).read_text())
    return facts["entries"], [Shard(shard_folder(work, i), pairs) for i, pairs in enumerate(facts["pairs"])]


def shard_folder(work: Path, number: int) -> Path:
    """Return the folder of a shard."""
    return work / f"shard-{number:06}"


def work_on(
    work: Path,
    step: str,
    processes: int,
    maker: Member,
    on_done: Callable[[Shard], object],
    check: Callable[[], object] = lambda: None,
) -> None:
    """Run a step, `clean` or `encode`, on the shards of `work` that no other maker works on, until all are done.

    processes: maximum number of processes; with 1, or for a single shard, none is started. on_done: called with each
    shard when it is done, whoever did it. check: called again and again, to raise what should end the work.
    TolkaError when a process dies.
    """
    waiting = _remaining(load_plan(work)[1], step, on_done)
    count = min(processes, len(waiting))
    if count < 2:
        _process(work, step, waiting, maker, on_done, check)
        return
    workers: list[Child] = []
    try:
        for _ in range(count):
            workers.append(_start(work, step, maker))
        while waiting:
            check()
            alive = any(worker.process.poll() is None for worker in workers)
            before, waiting = len(waiting), _remaining(waiting, step, on_done)
            if len(waiting) == before:
                for worker in sorted(workers, key=lambda worker: not worker.process.poll()):  # the failed ones first
                    _raise_if_failed(worker, none_alive=not alive)
                time.sleep(_POLL_SECONDS)
    finally:
        for worker in workers:
            worker.end()


def _remaining(shards: Sequence[Shard], step: str, on_done: Callable[[Shard], object]) -> list[Shard]:
    """Return the shards that are not done; call `on_done` with the others."""
    waiting = []
    for shard in shards:
        if shard.is_done(step):
            on_done(shard)
        else:
            waiting.append(shard)
    return waiting


def _process(
    work: Path,
    step: str,
    waiting: Sequence[Shard],
    maker: Member,
    on_done: Callable[[Shard], object] = lambda shard: None,
    check: Callable[[], object] = lambda: None,
) -> None:
    """Run the step on one shard after the other, until all are done."""
    if not waiting:
        return
    task = Task.load(work)
    tokenizer = Tokenizer.load(work) if step == "encode" else None
    first = random.Random().randrange(len(waiting))  # elsewhere in each process, so that few claim the same shard
    waiting = [*waiting[first:], *waiting[:first]]
    while waiting:
        others = []
        for shard in waiting:
            check()
            if not shard.is_done(step):
                if not maker.claim(f"{step}-{shard.folder.name}"):
                    others.append(shard)
                    continue
                _run(shard, step, task, tokenizer)
            on_done(shard)
        if len(others) == len(waiting):
            time.sleep(_POLL_SECONDS)
        waiting = others


def _run(shard: Shard, step: str, task: Task, tokenizer: Tokenizer | None) -> None:
    """Run the step on a shard, unless its last maker did so before it died."""
    try:
        if shard.is_done(step):
            return
        if tokenizer is None:
            shard.clean(task)
        else:
            shard.encode(task, tokenizer)
    except FileNotFoundError:
        if not shard.is_done(step):
            raise shard.damaged() from None
    if not shard.is_done(step):
        raise shard.damaged()


def _raise_if_failed(worker: Child, none_alive: bool) -> None:
    """Raise TolkaError if the process failed. none_alive: also if it ended without an error, as no worker is left."""
    code = worker.process.poll()
    if code or (none_alive and code is not None):
        raise TolkaError(
            f"a process that prepared the text ended with {code}: {worker.reason()}. The same command goes on from "
            "there; run.processes=1 needs the least memory"
        )


def _start(work: Path, step: str, maker: Member) -> Child:
    return start(__name__, [str(work), step, str(maker.folder), maker.name])


def main(arguments: Sequence[str]) -> None:
    """Run in a worker process. arguments: folder, step, folder and name of the maker."""
    end_with_parent()
    work, step, makers, name = arguments
    with naming(Path(work)):
        _process(Path(work), step, load_plan(Path(work))[1], Member(Path(makers), name))


if __name__ == "__main__":
    main(sys.argv[1:])
