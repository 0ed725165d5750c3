"""What a training tells while it runs: the interface of experiment trackers, and of one's own code.

A callback of one's own is a class in a module that `plugins=` imports; `tracking=` chooses it by its name:

    # my_callback.py
    from tolka.training.callbacks import CALLBACKS, Callback

    @CALLBACKS.register("diary")
    class Diary(Callback):
        def on_validation(self, line, result):
            print(line["update"], line["bleu"])

    mt-train 'plugins=[my_callback]' tracking=diary
"""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tolka.errors import TolkaError
from tolka.metrics.validation import Validation
from tolka.options.registry import Registry
from tolka.system.progress import Say


@dataclass(frozen=True)
class Beginning:
    """A training begins, or is resumed.

    folder: the run's. config: all settings, as config.yaml has them. log: writes a line to the run's log. update: the
    last one that is done (0 for a new run). history: the lines of metrics.jsonl up to it.
    """

    folder: Path
    config: Mapping[str, Any]
    log: Say
    update: int = 0
    history: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Ending:
    """A command ends. folder: the run's. error: why it ended early; "" if it did not.

    tests: test set -> its entry in scores.json, with every score's signature.
    """

    folder: Path
    tests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    error: str = ""


class Callback:
    """Is told what a training does, on the thread that trains: what takes long belongs in a thread of its own.

    Every method does nothing unless a subclass overrides it. An exception in a callback that `tracking=` has chosen is
    reported, and training continues.
    """

    def on_start(self, beginning: Beginning) -> None:
        """Training begins or is resumed; text, weights and optimizer are ready."""

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        """`trainer.log_every` updates are done (1: each of them); reading a loss waits for the device.

        line: as in metrics.jsonl: "update", "train_loss" (nats per target token), "lr", "tokens_per_second" (of the
        target), "epoch", "seconds". A number of updates that was there before means that training went back to its last
        good state. minutes_left: the estimated time until training ends, at most.
        """

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        """A validation is done.

        line: as in metrics.jsonl: "update", "valid_loss" (nats per target token), "ppl", "bleu", "chrf", "signatures",
        "seconds", and "mean_of_updates" for a mean of checkpoints. result: the same with all translations, and
        `trainer.samples` of them with source and reference.
        """

    def on_save(self, folder: Path) -> None:
        """A model directory (`best`, `last` or one of `checkpoints`) is whole on the disk."""

    def on_end(self, ending: Ending) -> None:
        """The command ends, also after an error; the best model is tested by then."""


CALLBACKS: Registry[Callback] = Registry("tracker", "tolka.tracking")


class Callbacks(Callback):
    """Several callbacks as one, told in order; an exception of one does not end the training."""

    def __init__(self, chosen: Mapping[str, Callback], log: Say) -> None:
        """chosen: by their names in `tracking`. log: where their exceptions are reported."""
        self._chosen, self._log, self._reported = chosen, log, set[tuple[str, str]]()

    def on_start(self, beginning: Beginning) -> None:
        self._tell("on_start", beginning)

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        self._tell("on_update", line, minutes_left)

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        self._tell("on_validation", line, result)

    def on_save(self, folder: Path) -> None:
        self._tell("on_save", folder)

    def on_end(self, ending: Ending) -> None:
        self._tell("on_end", ending)

    def _tell(self, event: str, *facts: Any) -> None:
        """Tell all of them; report an exception once for each place that raises one."""
        for name, callback in self._chosen.items():
            try:
                getattr(callback, event)(*facts)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(place.filename).name}, line {place.lineno}"
                if (name, where) not in self._reported:
                    self._reported.add((name, where))
                    words = " ".join(f"{type(error).__name__}: {error}".split())
                    with suppress(TolkaError):  # the run's folder is gone, which training reports
                        self._log(f"warning: tracking={name}: {event} failed ({where}: {words}); training continues")
