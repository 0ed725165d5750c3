"""Slurm's environment variables translated into torchrun's: `srun mt-train ...` trains as torchrun does."""

import os
import re


def translate() -> None:
    """Set torchrun's variables, if this process is one of several tasks of an srun step and they are not set.

    MASTER_ADDR and MASTER_PORT are left as they are where the user sets them.
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
