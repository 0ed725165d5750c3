"""Cleaning and encoding shards in several processes, with the same result as in one."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tolka.data.shards import Shard, Task
from tolka.errors import TolkaError
from tolka.system.atomic import name_in_disk_errors, replace_text
from tolka.system.child_processes import Child, end_with_parent, start
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer

PLAN = "plan.json"
"""Name of the file that `save_plan` writes."""
_POLL_SECONDS = 0.1
# These take about as long as it takes to start a process.
_PAIRS_PER_PROCESS = 10_000


def save_plan(
    work: Path, entries: Sequence[Sequence[int]], pairs: Sequence[int], directions: Sequence[Direction]
) -> None:
    """Save how the text was divided, when all of it was read; see `load_plan`.

    pairs: number of those of each shard. directions: of each entry.
    """
    replace_text(work / PLAN, json.dumps({"entries": entries, "pairs": pairs, "directions": directions}))


def load_plan(work: Path) -> tuple[list[list[int]], list[Shard]]:
    """Return the [first, last) shard of each entry of corpus.train, and all shards."""
    plan = json.loads((work / PLAN).read_text())
    shards = [
        Shard(shard_folder(work, number), plan["pairs"][number], Direction(*direction))
        for entry, direction in zip(plan["entries"], plan["directions"], strict=True)
        for number in range(*entry)
    ]
    return plan["entries"], shards


def shard_folder(work: Path, number: int) -> Path:
    """Return the folder of a shard."""
    return work / f"shard-{number:06}"


def work_on(work: Path, step: str, processes: int, on_done: Callable[[Shard], object]) -> None:
    """Run a step, `clean` or `encode`, on the shards of `work` for which it is not done yet.

    processes: maximum number of processes; with 1, or for a single shard or few pairs, none is started. on_done: called
    with each shard when it is done. TolkaError when a process dies.
    """
    waiting = _remaining(load_plan(work)[1], step, on_done)
    count = min(processes, len(waiting), sum(shard.count for shard in waiting) // _PAIRS_PER_PROCESS)
    if count < 2:
        _process(work, step, waiting, on_done)
        return
    workers: list[Child] = []
    try:
        for number in range(count):
            # Dealt out like cards: each gets shards of all parts of the text, and needs about as long as the others.
            workers.append(_start(work, step, waiting[number::count]))
        # Files tell what is done, whichever process did it. Asked who is alive before the files are looked at: a worker
        # that ends in between has written its last one.
        while waiting:
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
    work: Path, step: str, shards: Sequence[Shard], on_done: Callable[[Shard], object] = lambda shard: None
) -> None:
    """Run the step on one shard after the other."""
    if not shards:
        return
    task = Task.load(work)
    tokenizer = Tokenizer.load(work) if step == "encode" else None
    for shard in shards:
        # A worker of a command that was killed may have finished it just now.
        with suppress(FileNotFoundError):
            if tokenizer is None:
                shard.clean(task)
            else:
                shard.encode(task, tokenizer)
        if not shard.is_done(step):
            raise shard.damaged()
        on_done(shard)


def _raise_if_failed(worker: Child, none_alive: bool) -> None:
    """Raise TolkaError if the process failed. none_alive: also if it ended without an error, as no worker is left."""
    code = worker.process.poll()
    if code or (none_alive and code is not None):
        raise TolkaError(
            f"a process that prepared the text ended with {code}: {worker.reason()}. The same command continues from "
            "there; trainer.threads=1 needs the least memory"
        )


def _start(work: Path, step: str, shards: Sequence[Shard]) -> Child:
    return start(__name__, [str(work), step, *(shard.folder.name for shard in shards)])


def main(arguments: Sequence[str]) -> None:
    """Run in a worker process. arguments: folder, step, names of the shards."""
    end_with_parent()
    work, step, *names = Path(arguments[0]), *arguments[1:]
    with name_in_disk_errors(work):
        _process(work, step, [shard for shard in load_plan(work)[1] if shard.folder.name in set(names)])


if __name__ == "__main__":
    main(sys.argv[1:])
