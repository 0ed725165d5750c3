"""Where the time of tolka's updates goes, by torch's profiler.

    python scripts/bench/profile_training.py WORK [key=value ...]      (WORK as scripts/bench made it)

Prints the operations of ten updates by their own time, with their share, calls, and milliseconds an update.
"""

import sys
import tempfile
from pathlib import Path

import torch
from tolka_train import settings
from torch.profiler import ProfilerActivity, profile

from tolka.overrides import train_config
from tolka.pipeline import Pipeline
from tolka.runtime import keep_freed_memory

UPDATES, WARM_UP, SHOWN = 10, 3, 25


def main(work: Path, others: list[str]) -> None:
    """Profile some updates after a warm-up."""
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Pipeline(train_config([*settings(work, Path(folder)), *others])).trainer()
        trainer.objective.train()
        for _ in range(WARM_UP):
            trainer.probe()
        before = trainer.state.tokens
        with profile(activities=[ProfilerActivity.CPU]) as found:
            for _ in range(UPDATES):
                trainer.probe()
        tokens = trainer.state.tokens - before
    events = sorted(found.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    print(f"{UPDATES} updates, {tokens} target tokens, {total / 1e6:.2f} s, {torch.get_num_threads()} threads")
    print(f"{'operation':<58} {'share':>6} {'calls':>7} {'ms an update':>13}")
    for event in events[:SHOWN]:
        share, each = event.self_cpu_time_total / total, event.self_cpu_time_total / UPDATES / 1000
        print(f"{event.key[:58]:<58} {share:6.1%} {event.count:>7} {each:13.1f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
