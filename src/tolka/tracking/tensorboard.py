"""TensorBoard: files in the run's folder; `tensorboard --logdir runs` shows all runs."""

from collections.abc import Mapping
from typing import Any

from tolka.tracking.base import FOLDER, TrackedRun, Tracker
from tolka.training.callbacks import CALLBACKS


@CALLBACKS.register("tensorboard")
class TensorBoard(Tracker):
    """Writes event files with torch.utils.tensorboard; numbers are kept in single precision there."""

    name, package = "tensorboard", "tensorboard"

    def open(self, run: TrackedRun) -> None:
        self._path = run.folder / FOLDER / "tensorboard"
        self._latest_update = run.update
        self._write_from(run.update + 1)
        settings = "".join(f"    {key}: {value}\n" for key, value in run.settings.items())
        self._writer.add_text("settings", settings, run.update)

    def _write_from(self, update: int) -> None:
        """Begin a file, which tells TensorBoard to hide what older ones have from this update on."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(self._path), purge_step=update)

    def log(self, values: Mapping[str, float], update: int) -> None:
        if update < self._latest_update:  # training went back, as after a divergence
            self._writer.close()
            self._write_from(update)
        self._latest_update = update
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)
        self._writer.flush()  # a training may be killed, and is watched meanwhile

    def note(self, name: str, text: str, update: int) -> None:
        self._writer.add_text(name, text, update)

    def close(self, error: str) -> None:
        self._writer.close()
