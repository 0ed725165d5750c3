"""Trainings of a number of minutes of CPU time on one thread, each kept in its folder, and their scores."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = "figures.json"
Part = Callable[[Path, Path, float], None]


def train(settings: Sequence[str], folder: Path, minutes: float = 0.0) -> None:
    """Train and write down the scores of each test set, unless that is done. Prepared text is beside the folder.

    minutes: how long; 0 = to the end that the settings have.
    """
    if (folder / FIGURES).exists():
        return
    import tolka  # after the arguments are read: its imports are not timed

    started = time.process_time()
    prepared = f"run.prepared={folder.parent / 'prepared'}"
    end = [f"trainer.max_minutes={minutes}"] if minutes else []
    result = tolka.train([*settings, f"run.dir={folder}", prepared, *end])
    tests: dict[str, Any] = {test.name: test.as_dict() for test in result.tests}
    figures = {"updates": result.state.update, "seconds": time.process_time() - started, "tests": tests}
    (folder / FIGURES).write_text(json.dumps(figures), encoding="utf-8")


def figures_of(out: Path) -> dict[str, dict[str, Any]]:
    """Return folder's name -> what `train` wrote down."""
    return {path.parent.name: json.loads(path.read_text("utf-8")) for path in sorted(out.glob(f"*/{FIGURES}"))}


def cell(test: Mapping[str, Any]) -> str:
    """Return each metric's score with its interval, and what it was before fine-tuning."""
    before = {change["name"]: f"{change['before']:.1f} to " for change in test.get("changes", [])}
    scores = [(metric["name"], metric["score"], *metric["interval"]) for metric in test["metrics"]]
    return ", ".join(
        f"{name} {before.get(name, '')}{score:.1f} ({low:.1f} to {high:.1f})" for name, score, low, high in scores
    )


def run(description: str | None, parts: Mapping[str, Part], table: Callable[[Path], None]) -> None:
    """Do the part that the command line names: CORPORA OUT PART [--minutes N], or the table."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("part", choices=[*parts, "table"])
    parser.add_argument("--minutes", type=float, default=40)
    options = parser.parse_args()
    corpora, out = options.corpora.resolve(), options.out.resolve()
    if options.part == "table":
        table(out)
        return
    # On one thread CPU time is what the clock would show on an idle machine.
    time.perf_counter = time.process_time
    parts[options.part](corpora, out, options.minutes)
