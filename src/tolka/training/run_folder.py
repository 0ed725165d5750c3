"""A run's folder: its configuration, log, metrics and models."""

import json
import os
import shutil
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import yaml

from tolka.errors import CheckpointError, ConfigError, TolkaError, reason_of
from tolka.model_directory.verify import MANIFEST
from tolka.system.atomic import partial, recover, replace_text, try_lock
from tolka.system.number_format import json_text
from tolka.system.progress import Say, shows_bars, silent
from tolka.system.surrogates import printable
from tolka.system.whole_files import check_is_file
from tolka.training.saved_settings import SETTINGS, differences, has_begun, saved_settings

_LOCK = ".lock"
_HOLDER_CHARACTERS = 100
_UNSAVED = ".unsaved"  # exists until last/ is saved for the first time
CHECK_PAGE = "check.html"  # written by `mt-train --check` and before a training
# Files that a folder may have before a run begins in it, even if `claim` was interrupted.
_BEFORE_A_RUN = (CHECK_PAGE, _LOCK, partial(Path(SETTINGS)).name)


class RunFolder:
    """The folder of a run, which one process at a time may train in.

    It has config.yaml, train.log, metrics.jsonl, best/, last/, checkpoints/, samples/, shown/, plots/ and report.html,
    and check.html, which may be there before the run. Of several processes that train together only the first one
    writes here, except that each has a log: logs/rank1.log and so on.
    """

    def __init__(self, path: Path, rank: int = 0, say: Say = silent) -> None:
        """say: receives the lines of the log, too."""
        self.path, self._writes, self._say = path, rank == 0, say
        self._log_file = rank_log(path, rank) if rank else path / "train.log"
        self.best, self.last = path / "best", path / "last"
        self.metrics = path / "metrics.jsonl"
        self.overridden: list[str] = []
        self._lock: IO[str] | None = None
        self._settings = ""  # that config.yaml does not have yet

    def claim(
        self,
        config: Mapping[str, Any],
        complete: Callable[[Any], Any] = lambda saved: saved,
        override: bool = False,
        may_change: Callable[[str], bool] = lambda key: False,
    ) -> bool:
        """Claim the folder for this configuration; return whether there is a run in it to resume.

        complete: adds the settings that are newer than a saved configuration. override: take over a run
        with other settings, which are then in `overridden`. may_change: whether a resumed run may change a key.

        ConfigError, with the keys that differ, when it holds a run of another configuration.
        """
        saved = self.path / SETTINGS
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file, not a run's folder; choose another run.dir or run.name")
        if saved.is_file():
            # A run that ended before its first line of metrics (a file was missing, say) has nothing to lose: its
            # settings are replaced.
            differing = differences(complete(saved_settings(saved)), config, may_change) if has_begun(self.path) else []
            if differing and not override:
                raise ConfigError(
                    f"{self.path} holds another run; these settings differ: {'; '.join(differing)}. "
                    "Choose another run.name or run.dir, the same settings to continue it, or run.override=true"
                )
            self.overridden = differing
        elif self.path.is_dir() and any(path.name not in _BEFORE_A_RUN for path in self.path.iterdir()):
            raise ConfigError(f"{self.path} is not empty and holds no run; choose another run.dir or run.name")
        self.path.mkdir(parents=True, exist_ok=True)
        for path in self.path.iterdir():
            try:
                check_is_file(path)
            except ValueError as error:
                raise ConfigError(f"{path}: {error}") from None
        self._take_lock()
        # What an earlier process, which is gone, has left half-way: a folder that was being replaced.
        for model in (self.best, self.last):
            recover(model)
        # A manifest is written last: what has one is whole.
        resuming = (self.last / MANIFEST).is_file()
        is_lost = self.best.exists() and not (self.path / _UNSAVED).exists()
        if not resuming and (self.last.exists() or is_lost):
            broken = f"{self.last} has no {MANIFEST}, so that it is not whole and"
            what = broken if self.last.exists() else f"{self.path} has best/ but no last/, so that"
            again = "to train again from the beginning, choose another run.name or delete it"
            raise ConfigError(f"{what} nothing can continue from it; {again}")
        self._settings = yaml.safe_dump(dict(config), allow_unicode=True, sort_keys=False)
        if resuming:
            self.mark_saved()
        else:
            self.save_settings()
            # Its lines are of weights that were never saved.
            self.metrics.unlink(missing_ok=True)
        return resuming

    def save_settings(self) -> None:
        """Write config.yaml where that is not done: a resumed run keeps the one that it has until it trains further."""
        if self._settings:
            replace_text(self.path / SETTINGS, self._settings)
            self._settings = ""

    def replace_settings(self, config: Mapping[str, Any]) -> None:
        """Write config.yaml again, for a run that begins with what the prepared text has decided."""
        if self._writes:
            self._settings = yaml.safe_dump(dict(config), allow_unicode=True, sort_keys=False)
            self.save_settings()

    def mark_begin(self) -> None:
        """Note that training begins: until `mark_saved`, a `best/` alone is an interrupted first save."""
        if self._writes:
            (self.path / _UNSAVED).touch()

    def mark_saved(self) -> None:
        """Note that there is a `last/`: a `best/` alone is no longer an interrupted first save."""
        with suppress(OSError):  # read-only meanwhile: the next claim does it
            (self.path / _UNSAVED).unlink(missing_ok=True)

    def _take_lock(self) -> None:
        """Lock the folder; ConfigError when another process trains in it. The system frees the lock at exit."""
        self._lock = (self.path / _LOCK).open("a+", encoding="utf-8")
        self._lock.seek(0)
        if not try_lock(self._lock):
            holder = ""
            # Windows reads no locked file.
            with suppress(OSError):
                holder = self._lock.read(_HOLDER_CHARACTERS)
            self.release()
            known = f" ({holder})" if holder else ""
            raise ConfigError(f"{self.path} is in use by another process{known}; wait, or choose another run.name")
        # A full disk: then the message above does not name this process.
        with suppress(OSError):
            self._lock.truncate()
            self._lock.write(f"pid {os.getpid()} on {socket.gethostname()}")
            self._lock.flush()

    def release(self) -> None:
        """Unlock the folder for another process, or another call of this one."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def checkpoint(self, update: int) -> Path:
        """Return the path of a kept checkpoint: a model directory like `best/`."""
        return self.path / "checkpoints" / f"{update:07d}"

    def drop_checkpoints(self, kept: Collection[str]) -> None:
        """Delete all checkpoints except those of the updates `kept`, and what interrupted saves have left behind."""
        for folder in (self.path / "checkpoints").glob("*") if self._writes else ():
            if not folder.name.isdigit() or str(int(folder.name)) not in kept:
                shutil.rmtree(folder)

    def record(self, facts: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        if self._writes:
            self._add(self.metrics, json_text(facts) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """Return every line of metrics.jsonl so far."""
        if not self.metrics.exists():
            return []
        try:
            check_is_file(self.metrics)
            text = self.metrics.read_text(encoding="utf-8")
            # A crash may have left half a line at the end.
            complete_lines = text[: text.rfind("\n") + 1]
            lines = [json.loads(line) for line in complete_lines.splitlines()]
            if not all(isinstance(line, dict) and type(line.get("update")) is int for line in lines):
                raise ValueError("a line has no update")
            return lines
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{self.metrics} is damaged ({reason_of(error)})") from None

    def line_count(self) -> int:
        """Return the number of lines of metrics.jsonl."""
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    def forget_after(self, written: int) -> None:
        """Drop the lines after the first `written`, which a resumed run will write again."""
        # By number, as lines after the save may be of the same update.
        self._keep(self.history()[:written])

    def forget_tests(self) -> None:
        """Drop the lines of earlier tests: only the last test is of the best model."""
        self._keep([line for line in self.history() if "test" not in line])

    def _keep(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Write metrics.jsonl again with these lines alone."""
        if self._writes:
            replace_text(self.metrics, "".join(json_text(line) + "\n" for line in lines))

    def log(self, message: str, on_bar: bool = False) -> None:
        """Append a line to this process's log, with the time, and hand it to `say`.

        on_bar: whether a progress bar shows the same, so that `say` has it only where there are no bars.
        """
        if not (on_bar and shows_bars()):
            self._say(message)
        stamp, message = datetime.now().strftime("%Y-%m-%d %H:%M:%S"), printable(message, kept="\n\t")
        self._add(self._log_file, "".join(f"{stamp} {line}\n" for line in message.splitlines()))

    def leave(self, name: str, text: str) -> Path:
        """Write a text file in the folder. name: may contain slashes."""
        path = self.path / name
        if self._writes:
            with self._writing(path):
                replace_text(path, text)
        return path

    def _add(self, path: Path, text: str) -> None:
        """Append to a file."""
        with self._writing(path), path.open("ab") as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """Create a file's folder unless it exists; TolkaError if the run's folder is gone, or nothing goes into it."""
        with must_be_written(path):
            self.check_there()
            path.parent.mkdir(parents=True, exist_ok=True)
            yield

    def check_there(self) -> None:
        """Raise TolkaError if the claimed folder was deleted or moved during training."""
        # Whatever was written from then on would be half a run that looks like a complete one.
        if self._lock is not None and not (self.path / SETTINGS).exists():
            raise TolkaError(
                f"{self.path} was deleted or moved during the training, which ends; what was in it is not made again. "
                "The same command trains from the beginning"
            )


@contextmanager
def must_be_written(path: Path) -> Iterator[None]:
    """Raise TolkaError, which ends the training, where a file or folder cannot be written, as on a full disk."""
    try:
        yield
    except (OSError, CheckpointError) as error:
        why = getattr(error, "strerror", None) or error
        raise TolkaError(
            f"{path} could not be written ({why}): free some space, and run the same command again"
        ) from None


def rank_log(folder: Path, rank: int) -> Path:
    """Return the log of one of several processes."""
    return folder / "logs" / f"rank{rank}.log"


def next_time(folder: Path) -> str:
    """Return the words for what the same command would do with a run's folder: continue, or begin."""
    last = folder / "last"
    if (last / MANIFEST).is_file():
        return f"the same command continues from {last}"
    return "the same command starts from the beginning: nothing was saved yet"
