"""The steps of a recipe: each is done once, and leaves a record of what it read and wrote.

One that was interrupted goes on: a training resumes, and so does a translation, unless their settings are others. One
that is done is not done again with other inputs in the same folder: what it has made would be lost.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tolka.errors import ConfigError, DataError, StoppedError, TolkaError
from tolka.metrics.tables import table
from tolka.model_directory.settings import digest
from tolka.system import interrupts
from tolka.system.atomic import one_at_a_time
from tolka.system.progress import Say, say
from tolka.system.resumable import read_record, write_record
from tolka.system.workers import call, run_module

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One step of a recipe.

    name: its folder below steps/. title: for people. reads, writes: files and model directories. command: of
    `python -m tolka`, or else do: a function that returns its figures. given: what else it depends on, as JSON has it.
    """

    name: str
    title: str
    reads: Sequence[Path]
    writes: Sequence[Path]
    command: Sequence[str] = ()
    do: Callable[[], Figures] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


class Steps:
    """The steps of a recipe in a folder."""

    def __init__(self, folder: Path, steps: Sequence[Step], say: Say) -> None:
        self._folder, self._steps, self._say = folder, steps, say

    def table(self) -> str:
        """Return the steps as a table for a terminal, with the minutes of those that are done."""
        rows = list[list[str]]()
        for number, step in enumerate(self._steps, 1):
            seconds = record_of(self._folder, step.name)["seconds"] if self._is_done(step) else None
            rows.append([str(number), step.name, step.title, "" if seconds is None else f"{seconds / 60:.1f}"])
        return table(rows, ["", "step", "what it does", "minutes"], "rllr")

    def run(self) -> None:
        """Run what is not done yet. ConfigError before the first where one was done with other inputs.

        TolkaError as the step that fails.
        """
        count = len(self._steps)
        for step in self._steps:
            self._check(step, _inputs_of(step))
        for number, step in enumerate(self._steps, 1):
            interrupts.check()
            if self._is_done(step):
                self._say(f"step {number} of {count}: {step.title}: done before")
                continue
            self._say(f"step {number} of {count}: {step.title}")
            self._do(step)

    def _do(self, step: Step) -> None:
        inputs, started_at = _inputs_of(step), time.perf_counter()
        self._check(step, inputs)
        (self._folder / step.name).mkdir(parents=True, exist_ok=True)
        # Beside the step's folder, in which mt-train wants no file of others.
        record = self._folder / f"{step.name}.json"
        write_record(record, {"inputs": inputs})
        figures: Figures = {}
        if step.do:
            figures = step.do()
            if words := figures.get("words"):
                self._say(str(words))
        else:
            run_command(step.command, self._folder / ".process")
        if missing := [path for path in step.writes if not path.exists()]:
            raise DataError(f"the step {step.name} left no {missing[0]}")
        seconds = time.perf_counter() - started_at
        made = {"writes": _digests(step.writes), "figures": figures, "seconds": seconds}
        write_record(record, {"inputs": inputs, **made})

    def _check(self, step: Step, inputs: Mapping[str, Any]) -> None:
        """Raise ConfigError where the step was done with other inputs than these, as far as their files exist."""
        record = record_of(self._folder, step.name)
        changed = _changes(record["inputs"], inputs) if "writes" in record else []
        if changed:
            raise ConfigError(
                f"{self._folder / step.name} was made of other inputs ({', '.join(changed)}): choose another run.name "
                f"or run.dir, or remove {self._folder} to begin again"
            )

    def figures(self) -> dict[str, Figures]:
        """Return the figures of each step that is done."""
        return {step.name: record_of(self._folder, step.name).get("figures", {}) for step in self._steps}

    def _is_done(self, step: Step) -> bool:
        record = record_of(self._folder, step.name)
        return "writes" in record and record == {**record, "inputs": _inputs_of(step), "writes": _digests(step.writes)}


def run_command(command: Sequence[str], lock: Path) -> None:
    """Run `python -m tolka` with these arguments in a process of its own, which gives its memory back when it ends.

    lock: a file that one such process at a time has; others wait. A signal is passed on, and however this process ends,
    the other one saves its work and ends, too. StoppedError where that one was ended by a signal, and TolkaError, which
    it has reported, where it failed.
    """
    code = call(_run, command, lock, is_command=True)
    if code > 128:
        raise StoppedError("stopped; the same command goes on", code)
    if code:
        error = TolkaError(f"tolka {command[0]} failed")
        error.reported, error.exit_code = True, code
        raise error


def _run(command: Sequence[str], lock: Path) -> int:
    # A recipe that was killed has left a process that saves its work.
    with one_at_a_time(lock, lambda: say("waiting for the process of the interrupted step, which saves its work")):
        return run_module("tolka", command)


def record_of(folder: Path, name: str) -> dict[str, Any]:
    """Return the record of a step in the folder of all; {} where it has not begun, or its record was cut or edited."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return read_record(folder / f"{name}.json")
    return {}


def _inputs_of(step: Step) -> dict[str, Any]:
    """Return the inputs that a step depends on, as its record has them."""
    reads = [[path, digest] for path, digest in _digests(step.reads).items()]
    return {"command": [*step.command], **step.given, "reads": reads}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two inputs, in words; a file that is not there yet is none."""
    old, new = before["command"], now["command"]
    words = [word for word in (*old, *new) if (word in old) != (word in new)]
    others = [key for key in now if key not in ("command", "reads") and now[key] != before.get(key)]
    both = zip(now["reads"], before["reads"], strict=False)
    files = [path for (path, digest), (_, was) in both if digest not in ("", was)]
    names = [[path for path, _ in each["reads"]] for each in (before, now)]
    return [*words, *others, *(files if names[0] == names[1] else ["other files"])]


def _digests(paths: Iterable[Path]) -> dict[str, str]:
    """Return path -> digest of a file, or of what a model's translations depend on; "" for what is not there."""
    return {str(path): _digest(path) for path in paths}


def _digest(path: Path) -> str:
    if path.is_dir():
        with suppress(TolkaError):
            return digest(path)
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
