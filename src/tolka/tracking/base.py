"""What all experiment trackers have in common: what is sent when, and what has been sent already."""

import hashlib
import json
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tolka.metrics.validation import Sample, Validation
from tolka.report.runs import EXAMPLES
from tolka.system.atomic import replace_text
from tolka.system.memory import memory_in_use
from tolka.training.callbacks import Beginning, Callback, Ending
from tolka.training.saved_settings import flat

FOLDER = "tracking"
"""Folder within a run's folder: what each tracker has been sent, and the files of those that write files."""
_SHORT_NAMES = {"train_loss": "loss", "valid_loss": "loss"}


@dataclass(frozen=True)
class TrackedRun:
    """The run as a tracker knows it. id: the same after a resume. resumed: whether the tracker has it already.

    name: of the run's folder. folder: the run's. project: `tracking.project`. settings: flat, "model.layers" -> value.
    """

    id: str
    name: str
    folder: Path
    project: str
    settings: Mapping[str, Any]
    resumed: bool


class Tracker(Callback, ABC):
    """An experiment tracker; an error of its library is logged once, and training continues.

    What was sent is recorded, so that a resumed run continues the same curves: lines that training repeats, because it
    was killed after they were sent, are not sent twice, and lines that did not arrive are sent then.
    """

    name: ClassVar[str]
    """What `tracking=` calls it, and its extra."""
    package: ClassVar[str]
    """The package that it needs."""

    def on_start(self, beginning: Beginning) -> None:
        options = beginning.config["tracking"]
        self._folder, self._log, self._with_model = beginning.folder, beginning.log, bool(options["model"])
        self._record = beginning.folder / FOLDER / f"{self.name}.json"
        self._problem = ""  # why nothing more is sent
        self._latest: dict[str, int] = {}  # kind of line -> its latest update in this process
        # In the run's folder: wherever the folder is copied, the run continues in the tracker.
        sent = _read(self._record)
        self._id: str = sent.get("id") or uuid.uuid4().hex[:12]
        self._sent: dict[str, int] = dict(sent.get("sent", {}))
        self._noted: set[str] = set(self._sent)  # kinds whose signatures are sent
        self._results = str(sent.get("results", ""))
        # Of a run with other settings than before, what comes after its resumption is new.
        last = beginning.update if beginning.overridden else math.inf
        self._known = {kind: min(update, last) for kind, update in self._sent.items()}
        settings = flat(beginning.config)
        run = TrackedRun(
            self._id, self._folder.resolve().name, self._folder, options["project"], settings, bool(sent.get("opened"))
        )
        # The id before the run is opened: a command that is killed meanwhile must not make a second run.
        self._write_record(opened=run.resumed)
        if self._send(self.open, run):
            self._write_record()
        if self._known != self._sent:
            self._send(self.go_back, beginning.update + 1)
        # What did not arrive in an earlier command; what did is skipped.
        for line in beginning.history:
            self._add(line)

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        self._add(line, {f"system/{name}_gb": size for name, size in memory_in_use().items()})

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        if self._add(line) and result.samples:
            self._send(self.samples, result.samples, line["update"])

    def on_end(self, ending: Ending) -> None:
        if not hasattr(self, "_problem"):  # training ended before on_start
            return
        if not ending.error:
            self._add_results(ending, max(self._latest.values(), default=0))
        self._send(self.close, ending.error)

    def _add_results(self, ending: Ending, update: int) -> None:
        """Send what is known at the end: test scores, pictures, the model; unless an earlier command has sent it."""
        # The same command on a finished run ends at once, with the same scores: a model is not uploaded again.
        results = json.dumps(ending.tests, sort_keys=True)
        digest = hashlib.sha256(results.encode()).hexdigest()[:16]
        if digest == self._results:
            return
        for test, entry in ending.tests.items():
            values = {f"test/{test}/{score['name'].lower()}": score["score"] for score in entry["metrics"]}
            values[f"test/{test}/ppl"] = entry["perplexity"]["ppl"]
            self._send(self.log, values, update)
            for score in entry["metrics"]:
                name = f"test/{test}/{score['name'].lower()} signature"
                self._send(self.note, name, score["signature"], update)
        for kind in ("plots", EXAMPLES):
            for path in sorted((ending.folder / kind).glob("*.png")):
                self._send(self.picture, path, update)
        if self._with_model:
            self._send(self.model, ending.folder / "best")
        if not self._problem:
            self._results = digest
            self._write_record()

    def _send(self, send: Callable[..., None], *values: Any) -> bool:
        """Send something; return whether it was sent. The first failure is logged, and nothing is sent after it."""
        # Each further attempt might make training wait for minutes: the library has retried already.
        if self._problem:
            return False
        try:
            send(*values)
        except Exception as error:
            self._problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            self._log(
                f"warning: tracking={self.name}: nothing more is sent ({self._problem}); training continues, "
                "metrics.jsonl has every figure, and the same command sends what is missing"
            )
        return not self._problem

    def _add(self, line: Mapping[str, Any], others: Mapping[str, float] | None = None) -> bool:
        """Send the figures of a line of metrics.jsonl unless they have been sent; return whether they were now."""
        kind = _kind(line)
        if not kind:
            return False
        update = int(line["update"])
        # Training went back, as after a divergence: what comes now replaces what was sent.
        if update <= self._latest.get(kind, -1):
            self._known = {}
            self._latest = {kind: min(latest, update - 1) for kind, latest in self._latest.items()}
            self._send(self.go_back, update)
        self._latest[kind] = update
        if update <= self._known.get(kind, -1):
            return False
        values = {**dict(_figures(kind, line)), **(others or {})}
        if not self._send(self.log, values, update):
            return False
        self._sent[kind] = update
        self._write_record()
        # Once for each kind of line: a signature is the same in every validation.
        for name, signature in line.get("signatures", {}).items() if kind not in self._noted else ():
            self._send(self.note, f"{kind}/{name} signature", signature, update)
        self._noted.add(kind)
        return True

    def _write_record(self, opened: bool = True) -> None:
        with suppress(OSError):  # a full disk: at worst a line is sent twice
            record = {"id": self._id, "opened": opened, "sent": self._sent, "results": self._results}
            self._record.parent.mkdir(exist_ok=True)
            replace_text(self._record, json.dumps(record))

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

    @abstractmethod
    def picture(self, path: Path, update: int) -> None:
        """Add a picture, a PNG file."""

    def model(self, folder: Path) -> None:
        """Store a model directory; by default it stays where it is."""

    def go_back(self, update: int) -> None:
        """Drop points from this update on; by default they stay, beside those that are sent in their place."""

    @abstractmethod
    def close(self, error: str) -> None:
        """End the run. error: why it ended early, or ""."""


def samples_table(samples: Sequence[Sample]) -> str:
    """Return the samples as a table in Markdown."""
    rows = [("source", "translation", "reference"), ("---",) * 3]
    # \| is a bar that does not end a cell.
    rows += [(sample.source, sample.translation, sample.reference) for sample in samples]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def _kind(line: Mapping[str, Any]) -> str:
    """Return the first part of the names of a line's figures; "" if it has none for a curve."""
    if "train_loss" in line:
        return "train"
    if "valid_loss" in line:
        return "mean of checkpoints" if "mean_of_updates" in line else "validation"
    return ""


def _figures(kind: str, line: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key, value in line.items():
        # Trackers refuse NaN and inf, or show a gap.
        if key != "update" and isinstance(value, int | float) and math.isfinite(value):
            yield f"{kind}/{_SHORT_NAMES.get(key, key)}", value


def _read(record: Path) -> dict[str, Any]:
    """Return what an earlier command recorded; {} if there is nothing, or nothing readable."""
    try:
        values = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
