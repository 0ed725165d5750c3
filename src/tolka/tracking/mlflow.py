"""MLflow: https://mlflow.org. MLFLOW_TRACKING_URI names the server; without it, a database beside the run's folder."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tolka.metrics.validation import Sample
from tolka.tracking.base import TrackedRun, Tracker, samples_table
from tolka.training.callbacks import CALLBACKS

_AT_ONCE, _LONGEST = 100, 500  # parameters in a request, and characters in one: limits of every MLflow server
_RUN_TAG = "tolka.run"


@CALLBACKS.register("mlflow")
class MLflow(Tracker):
    """Logs through MlflowClient; the update is the step."""

    name, package = "mlflow", "mlflow"

    def open(self, run: TrackedRun) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        beside, artifacts = run.folder.resolve().parent, None
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            uri, artifacts = f"sqlite:///{beside / 'mlflow.db'}", (beside / "mlartifacts").as_uri()
        self._client: Any = MlflowClient(tracking_uri=uri)
        experiment = self._client.get_experiment_by_name(run.project)
        number = experiment.experiment_id if experiment else self._client.create_experiment(run.project, artifacts)
        # MLflow chooses the ids of its runs: ours is a tag, by which a resumed run is found.
        existing = self._client.search_runs([number], f"tags.`{_RUN_TAG}` = '{run.id}'")
        if existing:
            self._run: str = existing[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
        else:
            self._run = self._client.create_run(number, run_name=run.name, tags={_RUN_TAG: run.id}).info.run_id
        known = existing[0].data.params if existing else {}
        texts = {key: str(value)[:_LONGEST] for key, value in run.settings.items()}
        new = [Param(key, text) for key, text in texts.items() if key not in known]
        for first in range(0, len(new), _AT_ONCE):
            self._client.log_batch(self._run, params=new[first : first + _AT_ONCE])
        for key in sorted(key for key in texts.keys() & known.keys() if texts[key] != known[key]):
            self.note(f"now {key}", texts[key], 0)  # a parameter can never be changed
        self._log(f"tracking=mlflow: run {self._run} in {uri}")

    def log(self, values: Mapping[str, float], update: int) -> None:
        from mlflow.entities import Metric

        # One request for a line of metrics.jsonl, which has far fewer than the 1000 metrics that a server takes.
        now = int(time.time() * 1000)
        points = [Metric(_valid_name(name), value, now, update) for name, value in values.items()]
        self._client.log_batch(self._run, points)

    def note(self, name: str, text: str, update: int) -> None:
        self._client.set_tag(self._run, _valid_name(name), text)

    def samples(self, samples: Sequence[Sample], update: int) -> None:
        self._client.log_text(self._run, samples_table(samples), f"samples/{update:07d}.md")

    def model(self, folder: Path) -> None:
        self._client.log_artifacts(self._run, str(folder), "model")

    def close(self, error: str) -> None:
        self._client.set_terminated(self._run, "FAILED" if error else "FINISHED")


def _valid_name(name: str) -> str:
    """Return the name with only the characters that MLflow allows in one."""
    return "".join(character if character.isalnum() or character in "_-. :/" else "_" for character in name)
