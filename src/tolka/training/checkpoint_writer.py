"""Writing models to disk in a background thread while training continues."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from tolka.errors import CheckpointError, TolkaError
from tolka.model_directory.file_names import ResumeState
from tolka.training.options import TrainerConfig, model_rank
from tolka.training.run_folder import RunFolder


class SavableModel(Protocol):
    """A copy of a model that can be written as a model directory, and that training does not change."""

    def with_state(self, state: ResumeState) -> "SavableModel":
        """Return the same with the state to resume from."""

    def write(self, folder: Path) -> None:
        """Write the folder, atomically; CheckpointError or OSError on failure."""


Kept = Mapping[str, float | None]
"""Update -> trainer.metric of its checkpoint, None where it was not validated."""


class CheckpointWriter:
    """Saves models while training continues. What cannot be written is tried again with the next save."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="saving")
        self._at_work: list[Future[None]] = []
        self._failed: dict[Path, tuple[SavableModel, str]] = {}
        self._on_disk: set[Path] = set()

    def save(self, folder: Path, model: SavableModel, needed: bool = True) -> None:
        """Queue a model directory for writing. needed: retry on failure, and raise an error in the end."""
        self._failed.pop(folder, None)  # what it would have been is out of date
        self._at_work.append(self._thread.submit(self._write, folder, model, needed))

    def afterwards(self, job: Callable[[], None]) -> None:
        """Queue a job that relies on what was saved; it is skipped if something could not be."""
        self._at_work.append(self._thread.submit(lambda: None if self._failed else job()))

    def forget(self, kept: Collection[Path]) -> None:
        """Stop retrying checkpoints that are not in `kept`."""
        beside = {folder for folder in list(self._failed) if folder.name.isdigit()}
        for folder in beside.difference(kept):
            self._failed.pop(folder, None)

    def has(self, folder: Path) -> bool:
        """Return whether a model was certainly saved there since training began."""
        return folder in self._on_disk

    def wait(self) -> None:
        """Wait until everything is written or has failed."""
        at_work, self._at_work = self._at_work, []
        for job in at_work:
            job.result()

    def retry(self) -> None:
        """Try again what could not be written."""
        for folder, (model, _) in list(self._failed.items()):
            self._at_work.append(self._thread.submit(self._write, folder, model, True))

    def finish(self) -> None:
        """Wait, with one more attempt. TolkaError when something needed is not on disk."""
        self.wait()
        self.retry()
        self.wait()
        for folder, (_, why) in self._failed.items():
            raise TolkaError(f"{folder} could not be written ({why}): free some space, and run the same command again")

    def _write(self, folder: Path, model: SavableModel, needed: bool) -> None:
        self._run.check_there()
        try:
            model.write(folder)
        except (OSError, CheckpointError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            warning = f"warning: {folder} could not be written ({why}); training continues"
            if needed:
                self._failed[folder] = model, why
                warning += ", what stood there before still stands, and the next save tries again"
            self._run.log(warning)
        else:
            self._on_disk.add(folder)
            if folder == self._run.last:
                self._run.saved()
            if self._failed.pop(folder, None):
                self._run.log(f"{folder} is written now")


def to_keep(
    kept: Kept, nll: Mapping[str, float], config: TrainerConfig, most: int | None = None
) -> dict[str, float | None]:
    """Return which checkpoints stay: those to be averaged, the best ones, and every trainer.keep_every updates' one.

    nll: update -> validation loss, as far as known; it decides between equals. most: how many fit on disk; the oldest
    that are neither to be averaged nor among the best go first, then the worst of the best. Those to be averaged stay.
    """
    average = to_average(kept, nll, config)
    ranked = _by_metric(kept, nll, config)
    best = ranked[: config.keep_best]
    regular = [update for update in _newest_first(kept) if config.keep_every and int(update) % config.keep_every == 0]
    wanted = list(dict.fromkeys([*average, *best, *regular]))
    if most is not None:
        wanted = wanted[: max(most, len(average))]
    return {update: kept[update] for update in kept if update in wanted}


def to_average(kept: Kept, nll: Mapping[str, float], config: TrainerConfig) -> list[str]:
    """Return the updates whose checkpoints trainer.average asks for, as far as they exist. nll: as in `to_keep`."""
    ranked = _by_metric(kept, nll, config) if config.average_of == "best" else _validated(kept)
    return ranked[: config.average]


def _newest_first(kept: Kept) -> list[str]:
    return sorted(kept, key=int, reverse=True)


def _validated(kept: Kept) -> list[str]:
    return [update for update in _newest_first(kept) if kept[update] is not None]


def _by_metric(kept: Kept, nll: Mapping[str, float], config: TrainerConfig) -> list[str]:
    """Sort the best first; of equals the one with the lower nll, then the newer."""
    values = {update: value for update, value in kept.items() if value is not None}
    return sorted(
        _validated(kept), key=lambda update: model_rank(config.metric, values[update], nll.get(update)), reverse=True
    )
