"""Shards cleaned and encoded by several processes at once, with the same result as by one."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tolka.data.shards import Shard, Task
from tolka.errors import TolkaError
from tolka.text.tokenizer import Tokenizer

_SECONDS_BETWEEN_LOOKS = 0.1


def cores() -> int:
    """How many this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def shard_folders(work: Path) -> list[Path]:
    """The shards of a text, in order."""
    return sorted(path for path in work.glob("shard-*") if path.is_dir())


def work_on(work: Path, step: str, processes: int, done: Callable[[Shard], object]) -> None:
    """Bring every shard of `work` a step further: `clean`, or `encode` with the tokenizer that lies there.

    processes: at most so many; none is started where there is but one shard to do. done: told of each shard as it is
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
    running = [_start(work, step, names[first::count]) for first in range(count)]
    try:
        while waiting:
            ended = [process for process in running if process.poll() is not None]
            ready = [shard for shard in waiting if _is_done(shard, step)]
            for shard in ready:
                done(shard)
                waiting.remove(shard)
            if waiting and not ready:
                for process in ended:
                    _complain(process)
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _is_done(shard: Shard, step: str) -> bool:
    return shard.cleaned if step == "clean" else shard.encoded


def _do(work: Path, step: str, names: Sequence[str], done: Callable[[Shard], object]) -> None:
    """The step on these shards, one after the other."""
    task = Task.load(work)
    tokenizer = Tokenizer.load(work) if step == "encode" else None
    for name in names:
        shard = Shard(work / name)
        if tokenizer is None:
            shard.clean(task)
        else:
            shard.encode(task, tokenizer)
        done(shard)


def _start(work: Path, step: str, names: Sequence[str]) -> "subprocess.Popen[bytes]":
    # No multiprocessing: it would import the user's own script anew.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", __name__, str(os.getpid()), str(work), step, *names]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _complain(process: "subprocess.Popen[bytes]") -> None:
    """TolkaError for one that ended badly."""
    if process.returncode:
        words = (process.stderr.read() if process.stderr else b"").decode(errors="replace").split("\n")
        reason = next((line for line in reversed(words) if line.strip()), "killed; was there enough memory?")
        raise TolkaError(
            f"a process that prepared the text ended with {process.returncode}: {reason[:300]}. The same command goes "
            "on from there; run.processes=1 needs the least memory"
        )


def main(arguments: Sequence[str]) -> None:
    """One process's share: the parent's number, folder, step, names of shards. Stops when the parent is no more."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this one
    parent, work, step, *names = arguments

    def stop_without_parent(shard: Shard) -> None:
        if os.name != "nt" and os.getppid() != int(parent):
            sys.exit()

    _do(Path(work), step, names, stop_without_parent)


if __name__ == "__main__":
    main(sys.argv[1:])
