"""How this process was started: alone, or as one of several by torchrun or Slurm's srun."""

import ctypes
import multiprocessing
import os
import re
import signal
import sys
from dataclasses import dataclass

from tolka.errors import ConfigError


@dataclass(frozen=True)
class Launch:
    """This process's place among those started together. local_rank: counts the processes of one machine from 0."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0


def launch() -> Launch:
    """Return this process's place; ConfigError for variables that torchrun would not set."""
    size = _number("WORLD_SIZE", 1, least=1)
    if size == 1:
        return Launch()
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE is {size}, but {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: start "
            "the processes with torchrun, or unset WORLD_SIZE to train in one process"
        )
    if not 0 < _number("MASTER_PORT", 0) < 2**16:
        raise ConfigError(f"MASTER_PORT ({os.environ['MASTER_PORT']}) must be from 1 to 65535")
    rank = _number("RANK", 0)
    if rank >= size:
        raise ConfigError(f"RANK ({rank}) must be below WORLD_SIZE ({size}): ranks count from 0")
    return Launch(rank, size, _number("LOCAL_RANK", 0))


def is_muted() -> bool:
    """Return whether another process prints the messages: of those that train one model together, the first one."""
    try:
        return launch().rank > 0
    except ConfigError:
        return False  # it is about to be reported


def end_with_agent() -> None:
    """Let Linux kill this process when its parent, torchrun's agent, ends; do nothing without an agent."""
    # Of an agent that was killed, a rank would continue, or wait for it, and hold the lock of the run.
    if "TORCHELASTIC_RUN_ID" not in os.environ or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG of Linux' prctl.h
    # The agent may have ended before that call: this process then has another parent already.
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid != os.getppid():
        os._exit(1)


def restarts() -> int:
    """Return how often the processes have been started again, because one of them was killed."""
    return _number("TORCHELASTIC_RESTART_COUNT", 0)


def translate_slurm() -> None:
    """Set torchrun's variables, if this process is one of several tasks of an srun step and they are not set.

    So `srun mt-train ...` trains as torchrun does. MASTER_ADDR and MASTER_PORT are left as they are where the user sets
    them.
    """
    environment = os.environ
    # The batch script itself and the shell of salloc have SLURM_NTASKS too, but no SLURM_STEP_NUM_TASKS.
    tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
    if not tasks.isdecimal() or int(tasks) < 2 or "RANK" in environment or "WORLD_SIZE" in environment:
        return
    # All tasks must come to one port by themselves: from the job's number, and below those of outgoing connections.
    number = 10 * int(environment.get("SLURM_JOB_ID", "0")) + int(environment.get("SLURM_STEP_ID", "0"))
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    environment.setdefault("MASTER_ADDR", first_host(nodes) or "localhost")
    environment.setdefault("MASTER_PORT", str(20000 + number % 10000))
    environment["LOCAL_RANK"] = environment.get("SLURM_LOCALID", "0")
    environment["RANK"] = environment.get("SLURM_PROCID", "0")
    environment["WORLD_SIZE"] = tasks


def first_host(nodes: str) -> str:
    """Return the first host of Slurm's list of nodes, as node01 of node[01-04,7],other; "" if it is empty."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first[0]) if first else ""


def _number(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name, "").strip() or str(default)
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(
            f"the environment variable {name} ({text}) must be a number of at least {least}: torchrun and srun set it; "
            "unset it to train in one process"
        )
    return int(text)
