"""What it takes to prepare a large text: seconds by stage, pairs a second, memory; and to begin again when it is done.

Preparation, a start on its finished store, and going on in the middle of an epoch are processes of their own.
benchmarks/make_large_corpus.py makes a text of any size. Usage:
    python benchmarks/preparation.py OUT/train en de --valid DIR/valid [--processes 2] [key=value ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memory import Watch, family_now

STAGES = ("read", "clean", "train_tokenizer", "encode", "deliver")
UPDATES = 5  # before a training is stopped in the middle of its first epoch


def prepare(settings: list[str]) -> dict[str, Any]:
    """Prepare the text in this process and those it starts; what each stage took."""
    from tolka.config.command_line import train_config
    from tolka.data import preparation as module
    from tolka.run.inputs import read_inputs

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
    found = read_inputs(train_config(settings), lambda line: None).prepared
    return {
        "seconds": seconds,
        "whole": time.perf_counter() - started_at,
        "pairs": found.tally.total,
        "kept": found.tally.kept,
    }


def begin(settings: list[str]) -> dict[str, Any]:
    """Start a training on the finished store: seconds until the first update begins, and ends; imports left out."""
    import tolka.api.train  # noqa: F401
    from fresh import fresh_trainer
    from tolka.config.command_line import train_config

    started_at = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = fresh_trainer(train_config([*settings, f"run.dir={folder}"]))
        ready = time.perf_counter() - started_at
        trainer.probe()
        return {"ready": ready, "whole": time.perf_counter() - started_at}


def interrupt(settings: list[str]) -> dict[str, Any]:
    """Train a little in the middle of the first epoch, and stop: seconds from being asked to, to a finished save."""
    from fresh import fresh_trainer
    from tolka.config.command_line import train_config
    from tolka.distributed.ranks import ALONE
    from tolka.run.pipeline import claim

    config = train_config(settings)
    trainer = fresh_trainer(config)
    claim(trainer.run, config, ALONE)
    batches = len(trainer.loader.plan(0))
    trainer.state.batch = batches // 2
    asked_at = 0.0
    probe = trainer._train_step

    def update(*given: Any) -> Any:
        nonlocal asked_at
        made = probe(*given)
        if trainer.state.update == UPDATES:
            asked_at = time.perf_counter()
            trainer.stop("SIGTERM")
        return made

    trainer._train_step = update  # type: ignore[method-assign, assignment]
    trainer.fit()
    return {"saving": time.perf_counter() - asked_at, "batches": batches, "batch": trainer.state.batch}


def resume(settings: list[str]) -> dict[str, Any]:
    """Go on with it: seconds until the first update begins, and ends; imports left out."""
    import tolka.api.train  # noqa: F401
    from tolka.config.command_line import train_config
    from tolka.distributed.ranks import ALONE
    from tolka.run.inputs import read_inputs
    from tolka.run.pipeline import claim
    from tolka.run.training_setup import build_trainer, ready_device
    from tolka.training.run_folder import RunFolder
    from tolka.training.snapshots import read_last_state

    started_at = time.perf_counter()
    config = train_config(settings)
    run, device = RunFolder(config.run.folder), ready_device(config.trainer)
    claim(run, config, ALONE)
    inputs = read_inputs(config, run.log)
    saved = read_last_state(run.path, inputs.prepared.folder.name)
    trainer = build_trainer(config, inputs, run, device, resumed=saved)
    trainer.resume(saved)
    ready = time.perf_counter() - started_at
    trainer.probe()
    return {"ready": ready, "whole": time.perf_counter() - started_at, "batch": trainer.state.batch}


STEPS = {step.__name__: step for step in (prepare, begin, interrupt, resume)}


def measured(what: str, settings: list[str]) -> dict[str, Any]:
    """The result of one of STEPS in a fresh process, with the peak memory of it and all that it starts, in GB."""
    command = [sys.executable, __file__, "--step", what, *settings]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child,
        Watch(lambda: family_now(child.pid)) as memory,
    ):
        said, _ = child.communicate()
    if child.returncode:
        sys.exit(child.returncode)
    return {**json.loads(said.splitlines()[-1]), "memory": memory.peak / 1e9}


def main() -> None:
    """The command."""
    if sys.argv[1:2] == ["--step"]:
        what, *settings = sys.argv[2:]
        print(json.dumps(STEPS[what](settings)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("languages", nargs=2)
    parser.add_argument("--valid", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("settings", nargs="*", metavar="key=value")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory(dir=options.prefix.parent) as work:
        settings = [
            *("corpus=files", f"corpus.train={options.prefix}", f"corpus.valid={options.valid}"),
            *(f"corpus.{side}={code}" for side, code in zip(("source", "target"), options.languages, strict=True)),
            *(f"run.prepared={work}/prepared", f"trainer.threads={options.processes}", *options.settings),
        ]
        made, again = measured("prepare", settings), measured("begin", settings)
        settings.append(f"run.dir={work}/run")
        stopped, resumed = measured("interrupt", settings), measured("resume", settings)
    for stage in STAGES:
        took = made["seconds"][stage]
        print(f"{stage}: {took:.1f} s, {made['pairs'] / took:.0f} pairs/s")
    print(f"in all: {made['whole']:.1f} s for {made['pairs']} pairs, {made['kept']} kept")
    print(f"peak memory of all processes together: {made['memory']:.2f} GB")
    print(
        f"on the finished store: ready to train after {again['ready']:.1f} s, first update done after "
        f"{again['whole']:.1f} s, peak memory {again['memory']:.2f} GB"
    )
    print(
        f"stopped at batch {stopped['batch']} of {stopped['batches']}: saved after {stopped['saving']:.1f} s; went on "
        f"from there, ready after {resumed['ready']:.1f} s, first update done after {resumed['whole']:.1f} s"
    )


if __name__ == "__main__":
    main()
