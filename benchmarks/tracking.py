"""What an experiment tracker costs a training: processor seconds, which other work on the machine does not change.

    python benchmarks/tracking.py OUT tensorboard wandb [key=value ...]

Trains on the embedded corpus once for each tracker that is named, and prints the seconds of training (validation
included), the time that training waited in the tracker's methods, and the processor time of its thread. A process that
the tracker starts, as W&B does, is not counted.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import tolka
from tolka.tracking.base import Tracker
from tolka.tracking.outbox import Outbox

waited, worked = 0.0, 0.0


def count_waiting(method: str) -> None:
    """Add up the wall time of a method that the training thread calls."""
    real = getattr(Tracker, method)

    def counted(self: Tracker, *arguments: Any) -> None:
        global waited
        begun = time.perf_counter()
        real(self, *arguments)
        waited += time.perf_counter() - begun

    setattr(Tracker, method, counted)


def count_working() -> None:
    """Add up the processor time of the trackers' threads."""
    real = Outbox._work

    def counted(self: Outbox) -> None:
        global worked
        real(self)
        worked += time.thread_time()

    Outbox._work = counted  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("trackers_and_settings", nargs="+")
    options = parser.parse_args()
    trackers = [word for word in options.trackers_and_settings if "=" not in word]
    settings = [word for word in options.trackers_and_settings if "=" in word]
    os.environ.setdefault("TRACKIO_DIR", str(options.out / "trackio"))
    for method in ("on_start", "on_update", "on_validation"):
        count_waiting(method)
    count_working()
    global waited, worked
    for tracker in trackers:
        waited = worked = 0.0
        own = ["experiment=sample", f"run.dir={options.out / tracker}", f"tracking={tracker}", *settings]
        seconds = tolka.train(own).state.seconds
        print(
            f"{tracker}: training {seconds:.1f} s; it waited {waited:.3f} s ({waited / seconds:.2%}); thread "
            f"{worked:.2f} s of processor time",
            flush=True,
        )


if __name__ == "__main__":
    main()
