"""What all experiment trackers have in common: what is sent when, and under which id."""

import json
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tolka.metrics.tables import table
from tolka.metrics.validation import Sample, Validation
from tolka.system.atomic import replace_text
from tolka.system.memory import memory_in_use
from tolka.training.callbacks import Beginning, Callback, Ending
from tolka.training.saved_settings import flat

FOLDER = "tracking"
"""Folder within a run's folder: the run's id in each tracker, and the files of those that write files."""
_SHORT_NAMES = {"train_loss": "loss", "valid_loss": "loss"}


@dataclass(frozen=True)
class TrackedRun:
    """The run as a tracker knows it. id: the same after a resume. update: the last one of an earlier command.

    name: of the run's folder. folder: the run's. project: `tracking.project`. settings: flat, "model.layers" -> value.
    """

    id: str
    name: str
    folder: Path
    project: str
    settings: Mapping[str, Any]
    update: int


class Tracker(Callback, ABC):
    """An experiment tracker; an error of its library is logged once, and training continues.

    A resumed run has the same id, so that the tracker continues the same curves.
    """

    name: ClassVar[str]
    """What `tracking=` calls it, and its extra."""
    package: ClassVar[str]
    """The package that it needs."""

    def on_start(self, beginning: Beginning) -> None:
        self._folder, self._log = beginning.folder, beginning.log
        self._with_model = bool(beginning.config["tracking"]["model"])
        self._problem = ""  # why nothing more is sent
        self._latest = beginning.update
        self._noted: set[str] = set()  # kinds of lines whose signatures are sent
        self._send(self._open, beginning)

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        self._add(line, {f"system/{name}_gb": size for name, size in memory_in_use().items()})

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        self._add(line)
        if result.samples:
            self._send(self.samples, result.samples, line["update"])

    def on_end(self, ending: Ending) -> None:
        if not hasattr(self, "_problem"):  # training ended before on_start
            return
        if not ending.error:
            self._add_results(ending)
        self._send(self.close, ending.error)

    def _open(self, beginning: Beginning) -> None:
        """Begin a run and send it as a whole, or continue the one that an earlier command has begun."""
        # In the run's folder: wherever the folder is copied, the run continues in the tracker.
        record = self._folder / FOLDER / f"{self.name}.json"
        is_new = not record.exists()
        run_id = uuid.uuid4().hex[:12] if is_new else json.loads(record.read_text(encoding="utf-8"))["id"]
        name, project = self._folder.resolve().name, beginning.config["tracking"]["project"]
        update = 0 if is_new else beginning.update
        self.open(TrackedRun(run_id, name, self._folder, project, flat(beginning.config), update))
        if is_new:
            record.parent.mkdir(exist_ok=True)
            replace_text(record, json.dumps({"id": run_id}))
            for line in beginning.history:
                self._add(line)

    def _add_results(self, ending: Ending) -> None:
        """Send what is known at the end: test scores, the model."""
        for test, entry in ending.tests.items():
            values = {f"test/{test}/{score['name'].lower()}": score["score"] for score in entry["metrics"]}
            values[f"test/{test}/ppl"] = entry["perplexity"]["ppl"]
            self._send(self.log, values, self._latest)
            for score in entry["metrics"]:
                name = f"test/{test}/{score['name'].lower()} signature"
                self._send(self.note, name, score["signature"], self._latest)
        if self._with_model:
            self._send(self.model, ending.folder / "best")

    def _send(self, send: Callable[..., None], *values: Any) -> None:
        """Send something. The first failure is logged, and nothing is sent after it."""
        # Each further attempt might make training wait for minutes: the library has retried already.
        if self._problem:
            return
        try:
            send(*values)
        except Exception as error:
            self._problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._log(
                f"warning: tracking={self.name}: nothing more is sent ({self._problem}); training continues, "
                f"and metrics.jsonl has every figure: without {self._folder / FOLDER} the same command sends them all"
            )

    def _add(self, line: Mapping[str, Any], others: Mapping[str, float] | None = None) -> None:
        """Send the figures of a line of metrics.jsonl that has some for a curve."""
        kind = _kind(line)
        if not kind:
            return
        self._latest = int(line["update"])
        figures = {
            f"{kind}/{_SHORT_NAMES.get(key, key)}": value
            for key, value in line.items()
            # Trackers refuse NaN and inf, or show a gap.
            if key != "update" and isinstance(value, int | float) and math.isfinite(value)
        }
        self._send(self.log, {**figures, **(others or {})}, self._latest)
        # Once for each kind of line: a signature is the same in every validation.
        for name, signature in line.get("signatures", {}).items() if kind not in self._noted else ():
            self._send(self.note, f"{kind}/{name} signature", signature, self._latest)
        self._noted.add(kind)

    @abstractmethod
    def open(self, run: TrackedRun) -> None:
        """Begin a run, or continue it."""

    @abstractmethod
    def log(self, values: Mapping[str, float], update: int) -> None:
        """Add a point to each curve. values: by name, as in "validation/bleu". update: the step."""

    @abstractmethod
    def note(self, name: str, text: str, update: int) -> None:
        """Add a text to the run, as of an update. name: what it is shown under."""

    def samples(self, samples: Sequence[Sample], update: int) -> None:
        """Add translations of a validation; by default as a note, a table in Markdown."""
        self.note("validation/samples", samples_table(samples), update)

    def model(self, folder: Path) -> None:
        """Store a model directory; by default it stays where it is."""

    @abstractmethod
    def close(self, error: str) -> None:
        """End the run. error: why it ended early, or ""."""


def samples_table(samples: Sequence[Sample]) -> str:
    """Return the samples as a table in Markdown."""
    rows = [(sample.source, sample.translation, sample.reference) for sample in samples]
    return table(rows, ["source", "translation", "reference"], "lll", "markdown") + "\n"


def _kind(line: Mapping[str, Any]) -> str:
    """Return the first part of the names of a line's figures; "" if it has none for a curve."""
    if "train_loss" in line:
        return "train"
    if "valid_loss" in line:
        return "mean of checkpoints" if "mean_of_updates" in line else "validation"
    return ""
