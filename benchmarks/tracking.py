"""What an experiment tracker costs a training.

    python benchmarks/tracking.py OUT tensorboard wandb [key=value ...]

Trains on the embedded corpus once for each tracker that is named, and prints the seconds of training (validation
included), and how long training waited in the tracker's methods, at the start and afterwards.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import tolka
from tolka.tracking.base import Tracker

waited: dict[str, float] = {}


def count_waiting(method: str) -> None:
    """Add up the wall time of a method that the training thread calls."""
    real = getattr(Tracker, method)

    def counted(self: Tracker, *arguments: Any) -> None:
        begun = time.perf_counter()
        real(self, *arguments)
        waited[method] = waited.get(method, 0.0) + time.perf_counter() - begun

    setattr(Tracker, method, counted)


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
    for tracker in trackers:
        waited.clear()
        own = ["experiment=sample", f"run.dir={options.out / tracker}", f"tracking={tracker}", *settings]
        seconds = tolka.train(own).state.seconds
        start = waited.pop("on_start")
        print(
            f"{tracker}: training {seconds:.1f} s; it waited {start:.3f} s at the start, and "
            f"{sum(waited.values()):.3f} s afterwards",
            flush=True,
        )


if __name__ == "__main__":
    main()
