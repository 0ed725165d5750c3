"""Trackio: https://huggingface.co/docs/trackio. `trackio show` shows its local database; TRACKIO_SPACE_ID a Space."""

import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tolka.tracking.base import TrackedRun, Tracker
from tolka.training.callbacks import CALLBACKS


@CALLBACKS.register("trackio")
class Trackio(Tracker):
    """Logs with the update as the step."""

    name, package = "trackio", "trackio"

    def open(self, run: TrackedRun) -> None:
        import trackio

        run_name = f"{run.name}-{run.id}"  # Trackio knows a run by its name
        # It prints its messages, without a setting for where to, and stdout is for data.
        for name, module in [*sys.modules.items()]:
            if name.partition(".")[0] == "trackio":
                vars(module)["print"] = partial(print, file=sys.stderr)
        self._run: Any = trackio.init(
            run.project,
            run_name,
            config={**run.settings},
            resume="allow",
            embed=False,
            auto_log_gpu=False,  # `memory_in_use` is logged instead
            auto_log_cpu=False,
        )
        self._model_name = re.sub(r"[^\w.-]", "-", run_name, flags=re.ASCII)

    def log(self, values: Mapping[str, float], update: int) -> None:
        self._run.log({**values}, step=update)

    def note(self, name: str, text: str, update: int) -> None:
        import trackio

        self._run.log({name: trackio.Markdown(text)}, step=update)

    def model(self, folder: Path) -> None:
        self._run.log_artifact(folder, name=self._model_name, type="model")

    def close(self, error: str) -> None:
        self._run.finish()
