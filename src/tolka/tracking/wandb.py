"""Weights & Biases: https://docs.wandb.ai. Its own environment variables (WANDB_MODE, WANDB_ENTITY, ...) hold."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.metrics.validation import Sample
from tolka.tracking.base import FOLDER, TrackedRun, Tracker
from tolka.training.callbacks import CALLBACKS


@CALLBACKS.register("wandb")
class WeightsAndBiases(Tracker):
    """Logs against "update". Without a login the run stays offline, for `wandb sync`, and nothing is asked for."""

    name, package = "wandb", "wandb"

    def open(self, run: TrackedRun) -> None:
        import wandb

        folder = run.folder / FOLDER
        folder.mkdir(exist_ok=True)
        # wandb.init would ask for a key on the terminal, and a training that nobody watches would wait.
        online = os.environ.get("WANDB_MODE", "online") == "online"
        offline = online and not wandb.login(prompt=False)
        self._run: Any = wandb.init(
            project=run.project,
            name=run.name,
            id=run.id,
            resume="allow",
            dir=folder,
            config={**run.settings},
            mode="offline" if offline else None,
            # create_new: a sweep trains several runs in one process
            settings=wandb.Settings(console="off", silent=True, reinit="create_new", disable_git=True),
        )
        # Not W&B's own step, which can only rise: a training that goes back logs earlier updates again.
        self._run.define_metric("*", step_metric="update")
        self._model_name = re.sub(r"[^\w.-]", "-", f"{run.name}-{run.id}", flags=re.ASCII)
        if self._run.settings.mode == "offline":
            why = " (no login; `wandb login` first, and the curves are online at once)" if offline else ""
            self._log(f"tracking=wandb: offline{why}; to upload it: wandb sync {folder}/wandb/offline-run-*-{run.id}")
        elif self._run.url:
            self._log(f"tracking=wandb: {self._run.url}")

    def log(self, values: Mapping[str, float], update: int) -> None:
        self._run.log({"update": update, **values})

    def note(self, name: str, text: str, update: int) -> None:
        self._run.summary[name] = text

    def samples(self, samples: Sequence[Sample], update: int) -> None:
        import wandb

        rows = [[sample.source, sample.translation, sample.reference] for sample in samples]
        table = wandb.Table(columns=["source", "translation", "reference"], data=rows)
        self._run.log({"update": update, "validation/samples": table})

    def model(self, folder: Path) -> None:
        import wandb

        artifact = wandb.Artifact(self._model_name, type="model")
        artifact.add_dir(str(folder))
        self._run.log_artifact(artifact)

    def close(self, error: str) -> None:
        self._run.finish(exit_code=1 if error else 0)
