"""What it takes to prepare a large text: seconds by stage, pairs a second, memory; and to begin again when it is done.

Each preparation is a process of its own, and so is the start on its finished store. scripts/make_large_corpus.py makes
a text of any size. Usage:
    python scripts/bench_preparation.py OUT/train en de --valid DIR/valid [--processes 2] [key=value ...]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STAGES = ("read", "clean", "train_tokenizer", "encode", "deliver")


def prepare(settings: list[str]) -> dict[str, Any]:
    """Prepare the text in this process and those it starts; what each stage took."""
    from tolka.data import prepare as module
    from tolka.inputs import Inputs
    from tolka.overrides import train_config

    seconds = {}

    def timed(name: str) -> None:
        stage = getattr(module._Workshop, name)

        def run(workshop: Any, *rest: Any) -> None:
            started_at = time.perf_counter()
            stage(workshop, *rest)
            seconds[name] = time.perf_counter() - started_at

        setattr(module._Workshop, name, run)

    for name in STAGES:
        timed(name)
    started_at = time.perf_counter()
    found = Inputs(train_config(settings), lambda line: None).prepared
    return {
        "seconds": seconds,
        "whole": time.perf_counter() - started_at,
        "pairs": found.tally.total,
        "kept": found.tally.kept,
        "memory": peak(),
    }


def begin(settings: list[str]) -> dict[str, Any]:
    """Start a training on the finished store: seconds until the first update begins, and ends; imports left out."""
    import tolka.api  # noqa: F401
    from tolka.overrides import train_config
    from tolka.pipeline import Pipeline

    started_at = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Pipeline(train_config([*settings, f"run.dir={folder}"])).trainer()
        ready = time.perf_counter() - started_at
        trainer.probe()
        return {"ready": ready, "whole": time.perf_counter() - started_at, "memory": peak()}


def peak() -> float:
    """Largest resident memory of this process, GB; of those it starts the system gives no true figure."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measured(what: str, settings: list[str]) -> dict[str, Any]:
    """The result of `prepare` or `begin` in a fresh process."""
    command = [sys.executable, __file__, "--step", what, *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """The command."""
    if sys.argv[1:2] == ["--step"]:
        what, *settings = sys.argv[2:]
        print(json.dumps((prepare if what == "prepare" else begin)(settings)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("languages", nargs=2)
    parser.add_argument("--valid", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("settings", nargs="*", metavar="key=value")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory(dir=options.prefix.parent) as cache:
        settings = [
            *("corpus=files", f"corpus.train={options.prefix}", f"corpus.valid={options.valid}"),
            *(f"corpus.{side}={code}" for side, code in zip(("source", "target"), options.languages, strict=True)),
            *(f"run.prepared={cache}", f"run.processes={options.processes}", *options.settings),
        ]
        made, again = measured("prepare", settings), measured("begin", settings)
    for stage in STAGES:
        took = made["seconds"][stage]
        print(f"{stage}: {took:.1f} s, {made['pairs'] / took:.0f} pairs/s")
    print(f"in all: {made['whole']:.1f} s for {made['pairs']} pairs, {made['kept']} kept")
    print(f"peak memory: {made['memory']:.2f} GB, in the process that trains the tokenizer")
    print(
        f"on the finished store: ready to train after {again['ready']:.1f} s, first update done after "
        f"{again['whole']:.1f} s, peak memory {again['memory']:.2f} GB"
    )


if __name__ == "__main__":
    main()
