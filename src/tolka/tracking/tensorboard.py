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
        from torch.utils.tensorboard import SummaryWriter

        # Tells TensorBoard to hide what older files have from this update on.
        self._writer: Any = SummaryWriter(str(run.folder / FOLDER / "tensorboard"), purge_step=run.update + 1)
        settings = "".join(f"    {key}: {value}\n" for key, value in run.settings.items())
        self._writer.add_text("settings", settings, run.update)

    def log(self, values: Mapping[str, float], update: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, update)
        self._writer.flush()  # a training may be killed, and is watched meanwhile

    def note(self, name: str, text: str, update: int) -> None:
        self._writer.add_text(name, text, update)

    def close(self, error: str) -> None:
        self._writer.close()
