"""A user's own callback: it writes what it is told into a file, and one of its methods fails."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tolka.metrics.validation import Validation
from tolka.training.callbacks import CALLBACKS, Beginning, Callback, Ending


@CALLBACKS.register("diary")
class Diary(Callback):
    """Writes diary.txt in the run's folder."""

    def on_start(self, beginning: Beginning) -> None:
        self._path = beginning.folder / "diary.txt"
        self._write(f"start {beginning.update}, {len(beginning.history)} lines, seed {beginning.config['run']['seed']}")

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        self._write(f"update {line['update']}")

    def on_validation(self, line: Mapping[str, Any], result: Validation) -> None:
        self._write(
            f"validation {line['update']}, {len(result.translations)} translations, {len(result.samples)} samples"
        )

    def on_save(self, folder: Path) -> None:
        self._write(f"saved {folder.name}")

    def on_end(self, ending: Ending) -> None:
        self._write(f"end {ending.error or 'well'}, {sorted(ending.tests)}")

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


@CALLBACKS.register("broken")
class Broken(Callback):
    """Fails at every line."""

    def on_update(self, line: Mapping[str, Any], minutes_left: float) -> None:
        raise ValueError("no such\nroom")
