"""mt-train trainer.find_lr=true: a recommendation, and nothing that a training would leave or miss."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.api.train import find_lr, train
from tolka.config.command_line import train_config
from tolka.errors import ConfigError

Command = Callable[..., Any]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, the lock apart."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def few_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A range test of 71 updates, where users have one of 176."""
    monkeypatch.setattr("tolka.training.lr_finder._UPDATES_PER_DECADE", 10)
    monkeypatch.setattr("tolka.training.lr_finder._UPDATES", 71)


@pytest.mark.usefixtures("few_rates")
def test_a_recommendation_then_the_training_as_if_nothing_had_been(
    command: Command, tiny: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    found = command("mt-train", *tiny, "report.plots=true", "trainer.find_lr=true")
    assert (found.code, found.out) == (0, "")
    last = found.err.splitlines()[-1]
    assert last.startswith("optimizer.lr=0.")
    assert " is recommended: there the loss had come 85% of its way" in last
    run = tmp_path / "run"
    assert set(contents(run)) == {"config.yaml", "lr_finder.json", "plots/lr_finder.png", "train.log"}
    assert last in (run / "train.log").read_text()
    saved = json.loads((run / "lr_finder.json").read_text())
    assert f"optimizer.lr={saved['recommended']:.2g} is" in last
    assert [point["lr"] for point in saved["curve"][:11:10]] == pytest.approx([1e-6, 1e-5])
    assert saved["recommended"] in [point["lr"] for point in saved["curve"]]

    assert command("mt-train", *tiny).code == 0
    elsewhere = [setting for setting in tiny if not setting.startswith("run.dir=")]
    assert command("mt-train", *elsewhere, f"run.dir={tmp_path / 'straight'}").code == 0
    weights = [(tmp_path / name / "last" / "model.safetensors").read_bytes() for name in ("run", "straight")]
    assert weights[0] == weights[1]


def test_a_run_that_has_begun_is_not_touched(command: Command, begun: list[str], tmp_path: Path) -> None:
    before = contents(tmp_path / "run")
    outcome = command("mt-train", *begun, "trainer.find_lr=true")
    assert outcome.code == 2
    assert "these settings differ: trainer.find_lr (False, now True). Choose another run.name" in outcome.error
    with pytest.raises(ConfigError, match="holds another run"):
        find_lr(train_config(begun))  # from Python, whatever the setting says
    assert contents(tmp_path / "run") == before
    assert "resuming from update 5" in command("mt-train", *begun).err


@pytest.mark.usefixtures("without_matplotlib", "few_rates")
def test_without_matplotlib_there_is_a_recommendation(command: Command, tiny: list[str], tmp_path: Path) -> None:
    found = command("mt-train", *tiny, "report.plots=true", "trainer.find_lr=true")
    assert found.code == 0
    assert "no plots: matplotlib is not installed" in found.err
    assert found.err.splitlines()[-1].startswith("optimizer.lr=0.")
    assert set(contents(tmp_path / "run")) == {"config.yaml", "lr_finder.json", "train.log"}


@pytest.mark.usefixtures("few_rates")
def test_noam_is_told_its_own_setting(tiny: list[str], tmp_path: Path) -> None:
    """lr_init is the peak times the root of the warm-up: 1000 here, so that its root is 31.6."""
    settings = [setting for setting in tiny if not setting.startswith(("scheduler", "trainer.updates"))]
    noam = ["scheduler=noam", "scheduler.warmup=1000", "trainer.updates=1000"]
    found = find_lr(train_config([*settings, *noam]))
    last = (tmp_path / "run" / "train.log").read_text().splitlines()[-1]
    assert f"scheduler.lr_init={found.recommended * 1000**0.5:.2g} is recommended" in last


def test_train_does_not_overlook_the_setting(tiny: list[str]) -> None:
    with pytest.raises(ConfigError, match="call find_lr"):
        train(train_config([*tiny, "trainer.find_lr=true"]))
