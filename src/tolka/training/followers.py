"""What the ranks after the first one have in place of a run's folder and its writer: they write nothing but a log."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from tolka.model_directory.resume_state import ResumeState
from tolka.training.checkpoint_writer import CheckpointWriter, SavableModel
from tolka.training.run_folder import RunFolder, rank_log
from tolka.training.snapshots import RunSnapshots


class FollowerFolder(RunFolder):
    """A run's folder, in which another process writes. This rank's log is logs/rank<n>.log."""

    def __init__(self, path: Path, rank: int) -> None:
        super().__init__(path)
        self._rank = rank

    def begun(self) -> None:
        """Do nothing: the first rank marks the folder as one with nothing saved yet."""

    def saved(self) -> None:
        """Do nothing: the first rank removes that mark."""

    def drop_checkpoints(self, kept: Collection[str]) -> None:
        """Do nothing: the first rank removes checkpoints."""

    def record(self, facts: Mapping[str, Any]) -> None:
        """Do nothing: the first rank does it."""

    def history(self) -> list[dict[str, Any]]:
        """Return nothing: the first rank knows."""
        return []

    def written(self) -> int:
        """Return 0: the first rank knows."""
        return 0

    def forget_after(
        self, update: int, written: int | None = None, unrecorded: Collection[Mapping[str, Any]] = ()
    ) -> None:
        """Do nothing: the first rank does it."""

    def forget_tests(self) -> None:
        """Do nothing: the first rank does it."""

    def log(self, message: str, on_bar: bool = False) -> None:
        """Append a line to this rank's log."""
        self._add_to_log(rank_log(self.path, self._rank), message)

    def leave(self, name: str, text: str) -> Path:
        """Return the path at which the first rank writes."""
        return self.path / name


class FollowerWriter(CheckpointWriter):
    """Saves nothing; the first rank saves the same model."""

    def save(self, folder: Path, model: SavableModel, needed: bool = True) -> None:
        """Do nothing: the first rank does it."""

    def afterwards(self, job: Callable[[], None]) -> None:
        """Do nothing: the first rank does it."""


class FollowerSnapshots(RunSnapshots):
    """Takes no copies of the model; reads `last/` back like the first rank."""

    def take(self, scores: dict[str, Any]) -> SavableModel:
        """Return something that is never written."""
        return _Unsaved()


class _Unsaved:
    def with_state(self, state: ResumeState) -> SavableModel:
        return self

    def write(self, folder: Path) -> None:
        raise AssertionError("only the first rank saves models")
