"""Callbacks are told what training does, in order; one of the user's own that fails does not end it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.errors import TolkaError
from tolka.training.callbacks import Callback, Callbacks, Ending
from tolka.training.trainer import Trainer

Command = Callable[..., Any]
PLUGINS = Path(__file__).parents[1] / "support" / "plugins"


@pytest.fixture
def with_diary(tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.syspath_prepend(str(PLUGINS))
    return [*tiny, "trainer.samples=2", "trainer.log_every=2", "plugins=[my_callback]", "tracking=diary"]


def test_a_callback_of_ones_own_is_told_everything(command: Command, with_diary: list[str], tmp_path: Path) -> None:
    assert command("mt-train", *with_diary).code == 0
    assert (tmp_path / "run" / "diary.txt").read_text().splitlines() == [
        "start 0, 0 lines, seed 1",
        "update 2",
        "update 4",
        "validation 5, 8 translations, 2 samples",
        "saved best",
        "saved last",
        "end well, ['test']",
    ]
    assert command("mt-train", *with_diary, "trainer.updates=6", "trainer.average=0").code == 0
    assert (tmp_path / "run" / "diary.txt").read_text().splitlines()[7:9] == ["start 5, 3 lines, seed 1", "update 6"]


def test_the_end_after_an_error(
    command: Command, with_diary: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Trainer, window: object) -> None:
        raise TolkaError("the text is gone")

    monkeypatch.setattr(Trainer, "_train_step", failing)
    assert command("mt-train", *with_diary).code == 1
    assert (tmp_path / "run" / "diary.txt").read_text().splitlines()[-1] == "end the text is gone, []"


def test_a_callback_that_fails_is_reported_once(command: Command, with_diary: list[str]) -> None:
    outcome = command("mt-train", *with_diary, "tracking=[broken,diary]")
    assert outcome.code == 0
    assert outcome.err.count("warning: tracking=broken: on_update failed (my_callback.py, line ") == 1
    assert "ValueError: no such room); training continues" in outcome.err


@pytest.mark.parametrize(
    ("tracking", "complaint"),
    [
        ("tracking=[wandbb]", "unknown tracker 'wandbb'. Did you mean 'wandb'?"),
        ("tracking=[diary,diary]", "tracking (diary,diary) has a tracker twice: name each once"),
        ("tracking.project=", "tracking.project must not be empty: leave it out, or name one"),
    ],
)
def test_wrong_trackers(command: Command, with_diary: list[str], tracking: str, complaint: str, tmp_path: Path) -> None:
    outcome = command("mt-train", *with_diary, tracking)
    assert outcome.code == 2
    assert complaint in outcome.error
    assert not (tmp_path / "run").exists()


def test_a_tracker_that_is_not_installed(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tolka.tracking.options.find_spec", lambda name: None)
    outcome = command("mt-train", *tiny, "tracking=mlflow")
    assert outcome.code == 2
    assert outcome.error == "tracking=mlflow needs the package mlflow: pip install 'tolka[mlflow]'"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_tracking_may_change_on_resume(
    command: Command, with_diary: list[str], tiny: list[str], tmp_path: Path
) -> None:
    more = ["trainer.samples=2", "trainer.log_every=2", "trainer.updates=7"]
    assert command("mt-train", *with_diary).code == 0
    assert command("mt-train", *tiny, *more).code == 0
    assert "update 6" not in (tmp_path / "run" / "diary.txt").read_text()
    assert "names: []" in (tmp_path / "run" / "config.yaml").read_text()


def test_several_are_told_in_order() -> None:
    told: list[str] = []

    class Named(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_save(self, folder: Path) -> None:
            told.append(f"{self.name} {folder}")

    Callbacks({"one": Named("first"), "two": Named("second")}, print).on_save(Path("best"))
    assert told == ["first best", "second best"]


def test_all_are_told_of_the_end_also_when_one_fails() -> None:
    told: list[str] = []

    class Failing(Callback):
        def on_end(self, ending: Ending) -> None:
            raise OSError("disk full")

    class Listening(Callback):
        def on_end(self, ending: Ending) -> None:
            told.append(ending.error)

    callbacks = {"one": Listening(), "two": Failing(), "three": Listening()}
    Callbacks(callbacks, told.append).on_end(Ending(Path("run")))
    assert told[::2] == ["", ""]
    assert told[1].startswith("warning: tracking=two: on_end failed (test_callbacks.py, line ")
