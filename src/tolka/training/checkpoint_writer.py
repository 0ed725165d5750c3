"""Writing models to disk in a background thread while training continues."""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tolka.model_directory.write import Snapshot
from tolka.system.memory import return_freed_memory
from tolka.training.options import TrainerConfig, model_rank
from tolka.training.run_folder import RunFolder, must_be_written

Checkpoints = Mapping[str, float | None]
"""Update -> trainer.metric of its checkpoint, None where it was not validated."""


class CheckpointWriter:
    """Saves models in a background thread; what cannot be written ends the training."""

    # One thread, so that saves happen in the order in which they were queued; callbacks are called on the trainer's
    # own thread, by `report`.

    def __init__(self, run: RunFolder, on_save: Callable[[Path], None] = lambda folder: None) -> None:
        """on_save: called by `report` with each folder that is written."""
        self._run, self._on_save = run, on_save
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="saving")
        self._jobs: list[Future[None]] = []
        self._has_failed = False
        self._on_disk: set[Path] = set()
        self._written: deque[Path] = deque()  # and not yet reported

    def save(self, folder: Path, model: Snapshot) -> None:
        """Queue a model directory for writing. Waits for one that is no copy, which training would change."""
        self.queue(lambda: self._write(folder, model))
        if not model.is_copy:
            self.wait()

    def queue(self, job: Callable[[], None]) -> None:
        """Queue a job to run after the saves so far; it is skipped if one of them failed."""

        def unless_failed() -> None:
            # After a failure nothing more is written, nor deleted: what stood there before belongs together.
            if not self._has_failed:
                self._has_failed = True  # unless the job comes to its end
                job()
                self._has_failed = False

        self._jobs.append(self._thread.submit(unless_failed))

    def has(self, folder: Path) -> bool:
        """Return whether a model has been written there since training began."""
        return folder in self._on_disk

    def report(self) -> None:
        """Call `on_save`, on this thread, with the folders that have been written since the last time.

        TolkaError where one could not be written.
        """
        for job in self._jobs:
            if job.done():
                job.result()
        if self._written:
            return_freed_memory()  # of the copies
        while self._written:
            self._on_save(self._written.popleft())

    def wait(self) -> None:
        """Wait until everything is written; TolkaError where something could not be."""
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            # Raises here, on the trainer's thread, what the job raised.
            job.result()

    def _write(self, folder: Path, model: Snapshot) -> None:
        # A run's folder that the user has deleted must not come back with a single model in it.
        self._run.check_there()
        with must_be_written(folder):
            model.write(folder)
        self._on_disk.add(folder)
        self._written.append(folder)
        if folder == self._run.last:
            self._run.mark_saved()


def to_keep(checkpoints: Checkpoints, nll: Mapping[str, float], config: TrainerConfig) -> dict[str, float | None]:
    """Select the checkpoints to keep: those to be averaged, the best ones, and one every trainer.keep_every updates.

    nll: update -> validation loss, as far as known; it breaks ties, and then the newer one is better.
    """
    values = {update: value for update, value in checkpoints.items() if value is not None}
    ranks = {update: (model_rank(config.metric, values[update], nll.get(update)), int(update)) for update in values}
    best = sorted(ranks, key=lambda update: ranks[update], reverse=True)[: config.keep_best]
    regular = [update for update in checkpoints if config.keep_every and int(update) % config.keep_every == 0]
    wanted = {*to_average(checkpoints, config), *best, *regular}
    return {update: value for update, value in checkpoints.items() if update in wanted}


def to_average(checkpoints: Checkpoints, config: TrainerConfig) -> list[str]:
    """Return the updates of the last validated checkpoints, as many as trainer.average says, the newest first."""
    validated = (update for update, value in checkpoints.items() if value is not None)
    return sorted(validated, key=int, reverse=True)[: config.average]
