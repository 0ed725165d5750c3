"""What W&B, MLflow and Trackio are sent, against fakes of them; scripts/test_trackers.sh has the real ones."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tolka.metrics.validation import Sample, Validation
from tolka.tracking.base import Tracker
from tolka.tracking.mlflow import MLflow
from tolka.tracking.trackio import Trackio
from tolka.tracking.wandb import WeightsAndBiases
from tolka.training.callbacks import Beginning, Ending

SAMPLES = [Sample("a|b", "c", "d")]
CONFIG = {"tracking": {"project": "p", "model": True}, "model": {"layers": 2}}


class Sent:
    """Everything that a fake was given."""

    def __init__(self) -> None:
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self.texts: dict[str, str] = {}
        self.opened: list[dict[str, Any]] = []
        self.others: list[Any] = []
        self.ended: list[Any] = []

    def add(self, values: dict[str, Any], update: int) -> None:
        for name, value in values.items():
            if isinstance(value, int | float):
                self.curves.setdefault(name, []).append((update, value))
            else:
                self.others.append((name, value))


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    made = ModuleType(name)
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)


def fake_wandb(monkeypatch: pytest.MonkeyPatch, sent: Sent) -> None:
    class Run:
        url = ""
        settings = SimpleNamespace(mode="offline")

        def __init__(self) -> None:
            self.summary = sent.texts

        def define_metric(self, name: str, step_metric: str) -> None:
            assert (name, step_metric) == ("*", "update")

        def log(self, data: dict[str, Any]) -> None:
            sent.add({name: value for name, value in data.items() if name != "update"}, data["update"])

        def log_artifact(self, artifact: Any) -> None:
            sent.others.append(artifact)

        def finish(self, exit_code: int) -> None:
            sent.ended.append(exit_code)

    class Artifact:
        def __init__(self, name: str, type: str) -> None:
            self.name = name

        def add_dir(self, local_path: str) -> None:
            self.folder = local_path

    def init(**given: Any) -> Run:
        sent.opened.append(given)
        return Run()

    module(
        monkeypatch,
        "wandb",
        login=lambda prompt: False,
        init=init,
        Settings=SimpleNamespace,
        Table=lambda columns, data: [columns, *data],
        Image=lambda path: path,
        Artifact=Artifact,
    )


def fake_mlflow(monkeypatch: pytest.MonkeyPatch, sent: Sent) -> None:
    class MlflowClient:
        def __init__(self, tracking_uri: str) -> None:
            assert tracking_uri.startswith("sqlite:///")

        def get_experiment_by_name(self, name: str) -> Any:
            return None

        def create_experiment(self, name: str, artifact_location: str | None) -> str:
            return name

        def search_runs(self, experiment_ids: list[str], filter_string: str) -> list[Any]:
            if not sent.opened:
                return []
            params = {key.key: key.value for each in sent.opened for key in each.get("params", ())}
            return [SimpleNamespace(info=SimpleNamespace(run_id="1"), data=SimpleNamespace(params=params))]

        def create_run(self, experiment_id: str, run_name: str, tags: dict[str, str]) -> Any:
            sent.opened.append({"project": experiment_id, "name": run_name})
            return SimpleNamespace(info=SimpleNamespace(run_id="1"))

        def update_run(self, run_id: str, status: str) -> None:
            sent.opened.append({"status": status})

        def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
            assert len(params) <= 100
            sent.opened.append({"params": list(params)})
            for metric in metrics:
                sent.add({metric.key: metric.value}, metric.step)

        def set_tag(self, run_id: str, key: str, value: str) -> None:
            sent.texts[key] = value

        def log_text(self, run_id: str, text: str, artifact_file: str) -> None:
            sent.others.append((artifact_file, text))

        def log_artifact(self, run_id: str, local_path: str, artifact_path: str) -> None:
            sent.others.append((artifact_path, local_path))

        def log_artifacts(self, run_id: str, local_dir: str, artifact_path: str) -> None:
            sent.others.append((artifact_path, local_dir))

        def set_terminated(self, run_id: str, status: str) -> None:
            sent.ended.append(status)

    module(monkeypatch, "mlflow", MlflowClient=MlflowClient)
    module(
        monkeypatch,
        "mlflow.entities",
        Param=lambda key, value: SimpleNamespace(key=key, value=value),
        Metric=lambda key, value, timestamp, step: SimpleNamespace(key=key, value=value, step=step),
    )


def fake_trackio(monkeypatch: pytest.MonkeyPatch, sent: Sent) -> None:
    class Run:
        def log(self, metrics: dict[str, Any], step: int) -> None:
            texts = {name: value[1] for name, value in metrics.items() if isinstance(value, tuple)}
            sent.texts.update(texts)
            sent.add({name: value for name, value in metrics.items() if name not in texts}, step)

        def log_artifact(self, path: Path, name: str, type: str) -> None:
            sent.others.append((name, path))

        def finish(self) -> None:
            sent.ended.append("")

    def init(project: str, name: str, **given: Any) -> Run:
        sent.opened.append({"project": project, "name": name, **given})
        return Run()

    module(monkeypatch, "trackio", init=init, Markdown=lambda text: ("text", text), Image=lambda path: path)


@pytest.mark.parametrize(
    ("kind", "fake", "ended"),
    [
        (WeightsAndBiases, fake_wandb, [0, 1]),
        (MLflow, fake_mlflow, ["FINISHED", "FAILED"]),
        (Trackio, fake_trackio, ["", ""]),
    ],
    ids=["wandb", "mlflow", "trackio"],
)
def test_curves_texts_and_the_model_are_sent(
    kind: type[Tracker], fake: Any, ended: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(variable, raising=False)
    sent, log = Sent(), list[str]()
    fake(monkeypatch, sent)
    run = tmp_path / "run"
    run.mkdir()
    first = kind()
    first.on_start(Beginning(run, CONFIG, log.append))
    lines = [{"update": update, "train_loss": 1 / update, "lr": 0.1} for update in (2, 4)]
    for line in lines:
        first.on_update(line, 1.0)
    validation = {"update": 4, "valid_loss": 2.0, "bleu": 5.0, "signatures": {"bleu": "nrefs:1"}}
    first.on_validation(validation, Validation({}, "", samples=SAMPLES))
    tests = {"fresh": {"metrics": [{"name": "BLEU", "score": 7.0, "signature": "nrefs:2"}], "perplexity": {"ppl": 3.0}}}
    first.on_end(Ending(run, tests=tests))
    assert not [line for line in log if line.startswith("warning")], log
    assert sent.curves["train/loss"] == [(2, 0.5), (4, 0.25)]
    assert sent.curves["train/lr"] == [(2, 0.1), (4, 0.1)]
    assert sent.curves["validation/loss"] == [(4, 2.0)]
    assert sent.curves["test/fresh/bleu"] == [(4, 7.0)]
    assert sent.texts["validation/bleu signature"] == "nrefs:1"
    assert sent.texts["test/fresh/bleu signature"] == "nrefs:2"
    others = f"{sent.others} {sent.texts}"
    assert "b | c | d |" in others or "['a|b', 'c', 'd']" in others  # of the samples, a table in Markdown or W&B's
    assert "layers" in str(sent.opened)
    again = kind()
    again.on_start(Beginning(run, CONFIG, log.append, update=4, history=[*lines, validation]))
    again.on_update({"update": 6, "train_loss": 0.1}, 1.0)
    again.on_end(Ending(run, error="out of memory"))
    assert sent.curves["train/loss"] == [(2, 0.5), (4, 0.25), (6, 0.1)]
    assert sent.curves["validation/loss"] == [(4, 2.0)]
    assert sent.ended == ended
