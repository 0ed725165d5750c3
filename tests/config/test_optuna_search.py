"""hydra/sweeper=optuna: what it draws, what it is told, and that an interrupted study resumes."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tolka.cli import multirun
from tolka.config.compose import parsed_overrides
from tolka.config.optuna_search import search_space
from tolka.errors import DataError

optuna = pytest.importorskip("optuna")
Command = Callable[..., Any]
DRAWN = ["optimizer.lr=tag(log, interval(0.001,0.1))", "model.dropout=0.0,0.1,0.2", "run.seed=range(1,4)"]


def test_each_list_and_range_has_its_distribution() -> None:
    space = search_space(parsed_overrides([*DRAWN, "trainer.updates=int(interval(5,9))", "model=lstm"]))
    assert space == {
        "optimizer.lr": optuna.distributions.FloatDistribution(0.001, 0.1, log=True),
        "model.dropout": optuna.distributions.CategoricalDistribution(["0.0", "0.1", "0.2"]),
        "run.seed": optuna.distributions.CategoricalDistribution([1, 2, 3]),
        "trainer.updates": optuna.distributions.IntDistribution(5, 9),
    }


class Trainings:
    """In place of trainings: the smaller the rate, the better; one is interrupted, and one fails."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.rates: list[float] = []
        self.interrupted_at = self.failed_at = 0

    def __call__(self, config: Any) -> Any:
        self.folders.append(config.run.folder.name)
        self.rates.append(config.optimizer.lr)
        if len(self.folders) == self.interrupted_at:
            raise KeyboardInterrupt
        if len(self.folders) == self.failed_at:
            raise DataError("no text")
        return SimpleNamespace(state=SimpleNamespace(best=-config.optimizer.lr))


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    made = Trainings()
    monkeypatch.setattr(multirun, "train", made)
    monkeypatch.setattr("tolka.report.runs.read_run", lambda folder, label: label)
    monkeypatch.setattr("tolka.report.summary.comparison_table", lambda runs: " ".join(runs))
    return made


def search(command: Command, tiny: list[str], count: int, *more: str) -> Any:
    sweeper = ["hydra/sweeper=optuna", f"hydra.sweeper.n_trials={count}"]
    return command("mt-train", "-m", *tiny, *sweeper, "optimizer.lr=tag(log, interval(0.001,0.1))", *more)


@pytest.mark.slow
def test_a_study_finds_the_better_values_and_resumes(
    command: Command, tiny: list[str], tmp_path: Path, trainings: Trainings
) -> None:
    trainings.interrupted_at = 2
    assert search(command, tiny, 3).code == 130
    outcome = search(command, tiny, 3)
    assert outcome.code == 0, outcome.err
    assert "1 trainings are done, 1 interrupted" in outcome.err
    assert len(trainings.folders) == 4  # the second one twice, in the same folder
    assert trainings.folders[2] == trainings.folders[1]
    assert len(set(trainings.folders)) == 3
    assert sorted(path.stem for path in (tmp_path / "run" / "jobs").iterdir()) == [f"{n:04}" for n in range(3)]
    assert f"best of 3 trainings: {-min(trainings.rates):.4g} with optimizer.lr=" in outcome.err
    assert trainings.folders[0] == f"lr={trainings.rates[0]:.6g}"
    assert search(command, tiny, 3).code == 0
    assert len(trainings.folders) == 4
    assert search(command, tiny, 4).code == 0
    assert len(trainings.folders) == 5
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["jobs", "optuna.journal"]


@pytest.mark.parametrize(("metric", "direction"), [("chrf", "MAXIMIZE"), ("nll", "MINIMIZE")])
def test_the_search_goes_where_the_metric_is_better(
    command: Command, tiny: list[str], tmp_path: Path, trainings: Trainings, metric: str, direction: str
) -> None:
    assert search(command, tiny, 1, f"trainer.metric={metric}").code == 0
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "run" / "optuna.journal"))
    study = optuna.load_study(study_name="tolka", storage=optuna.storages.JournalStorage(backend))
    assert study.direction.name == direction


def test_settings_of_hydra_s_that_are_wrong(command: Command, tiny: list[str]) -> None:
    for setting, complaint in (
        ("hydra.sweeper.n_trails=3", "Hydra's documentation of hydra/sweeper has those that there are"),
        ("+hydra.sweeper.sampler=x", "hydra.sweeper.sampler is Hydra's own setting"),
        ("hydra.launcher.n_jobs=2", "unknown key 'hydra.launcher.n_jobs'"),
        ("hydra.sweeper.n_jobs=0", "hydra.sweeper.n_jobs (0) must be at least 1"),
        ("hydra.sweeper.seed=x", "hydra.sweeper.seed ('x') must be a whole number"),
        ("hydra.sweeper.params=3", "hydra.sweeper.params (3) must be a mapping"),
    ):
        outcome = search(command, tiny, 3, setting)
        assert (outcome.code, complaint in outcome.error) == (2, True), outcome.error


def test_a_training_that_fails_is_told_and_the_others_go_on(
    command: Command, tiny: list[str], tmp_path: Path, trainings: Trainings
) -> None:
    trainings.failed_at = 2
    outcome = search(command, tiny, 3)
    assert outcome.code == 1
    assert f"error: {trainings.folders[1]} failed: no text" in outcome.err
    assert "best of 2 trainings" in outcome.err
    records = [json.loads(path.read_text()) for path in sorted((tmp_path / "run" / "jobs").iterdir())]
    assert [bool(record["error"]) for record in records] == [False, True, False]


def test_without_optuna_the_extra_is_named(command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    monkeypatch.setitem(__import__("sys").modules, "optuna.distributions", None)
    outcome = search(command, tiny, 3)
    assert (outcome.code, "pip install 'tolka[sweep]'" in outcome.error) == (2, True)


def test_plugins_of_hydra_that_are_not_there(command: Command, tiny: list[str]) -> None:
    for setting, complaint in (
        ("hydra/launcher=submitit_none", "unknown hydra/launcher 'submitit_none'. Did you mean 'submitit_local'?"),
        ("hydra/sweeper=bayes", "unknown hydra/sweeper 'bayes'"),
    ):
        outcome = command("mt-train", "-m", *tiny, "run.seed=1,2", setting)
        assert (outcome.code, complaint in outcome.error) == (2, True), outcome.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
        ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"],
    ],
)
def test_launchers_train_side_by_side(command: Command, tiny: list[str], tmp_path: Path, launcher: list[str]) -> None:
    outcome = command("mt-train", "-m", *tiny, "run.seed=1,2", *launcher)
    assert outcome.code == 0, outcome.err
    weights = [(tmp_path / "run" / f"seed={seed}" / "best" / "model.safetensors").read_bytes() for seed in (1, 2)]
    assert weights[0] != weights[1]
    assert len(list((tmp_path / "run" / "jobs").iterdir())) == 2
