"""Where the time of tolka's updates goes, by torch's profiler.

    python benchmarks/profile_training.py WORK [key=value ...]      (WORK as benchmarks made it)

Prints the operations of ten updates by their own time, with their share, calls, and milliseconds an update; in the
faster precision unless told otherwise (trainer.precision=fp32).
"""

import sys
import tempfile
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from fresh import fresh_trainer
from profiles import show
from tolka.config.command_line import train_config
from tolka.system.memory import keep_freed_memory
from tolka_train import settings

UPDATES, WARM_UP = 10, 3


def main(work: Path, others: list[str]) -> None:
    """Profile some updates after a warm-up."""
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        trainer = fresh_trainer(train_config([*settings(work, Path(folder)), *others]))
        trainer.step.objective.train()
        for _ in range(WARM_UP):
            trainer.probe()
        before = trainer.state.tokens
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for _ in range(UPDATES):
                trainer.probe()
        tokens = trainer.state.tokens - before
    print(f"{UPDATES} updates, {tokens} target tokens, {torch.get_num_threads()} threads; ", end="")
    show(found, UPDATES, "an update")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
