"""Two processes claim one folder: with the same settings and versions, and with one answer for both."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import yaml

from tolka.config.command_line import train_config
from tolka.config.schemas import TrainConfig
from tolka.distributed.ranks import ALONE, Ranks
from tolka.errors import ConfigError, TolkaError
from tolka.run.pipeline import claim
from tolka.training.run_folder import RunFolder


@dataclass(frozen=True)
class Thread(Ranks):
    """A rank that is a thread of this process; both hand their values over at a barrier."""

    values: Sequence[Any] = ()
    meeting: Any = None

    def gather(self, value: Any) -> list[Any]:
        assert isinstance(self.values, list)
        self.values[self.rank] = value
        self.meeting.wait()
        gathered = list(self.values)
        self.meeting.wait()  # before anyone overwrites them
        return gathered


def both(folder: Path, *configs: TrainConfig) -> list[Any]:
    """What each of two ranks gets: whether it resumes, or its error; and what it overrides."""
    values, meeting = [None, None], Barrier(2, timeout=60)

    def run(rank: int) -> Any:
        ranks, run_folder = Thread(rank, 2, values, meeting), RunFolder(folder, rank)
        try:
            return claim(run_folder, configs[rank], ranks), run_folder.overridden
        except TolkaError as error:
            return str(error)
        finally:
            run_folder.release()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(2)))


def begun(folder: Path, config: TrainConfig) -> None:
    """Leave a folder as a run does that has saved a model."""
    (folder / "last").mkdir(parents=True)
    (folder / "last" / "manifest.json").write_text("{}")
    (folder / "config.yaml").write_text(yaml.safe_dump(config.as_dict()))


def test_a_new_run_of_two(tiny: list[str], tmp_path: Path) -> None:
    config = train_config(tiny)
    assert both(tmp_path / "run", config, config) == [(False, [])] * 2
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text()) == config.as_dict()


def test_a_run_that_is_resumed_by_two(tiny: list[str], tmp_path: Path) -> None:
    config = train_config(tiny)
    begun(tmp_path / "run", config)
    assert both(tmp_path / "run", config, config) == [(True, [])] * 2


def test_other_settings_of_another_process_are_named_and_nothing_is_claimed(tiny: list[str], tmp_path: Path) -> None:
    first, second = train_config(tiny), train_config([*tiny, "run.seed=2", "trainer.updates=6"])
    for outcome in both(tmp_path / "run", first, second):
        assert outcome.startswith("the processes of this training have different settings: ")
        assert "run.seed (1, in process 1: 2); trainer.updates (5, in process 1: 6); start all with the same" in outcome
    assert not (tmp_path / "run").exists()


def test_another_version_of_a_process(tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Versions(str):
        """Another one each time that it is asked for."""

        asked = 0

        def __str__(self) -> str:
            Versions.asked += 1
            return f"2.{Versions.asked}"

    monkeypatch.setattr("torch.__version__", Versions())
    config = train_config(tiny)
    for outcome in both(tmp_path / "run", config, config):
        assert "different settings: torch ('2." in outcome
        assert "on machines with the same versions" in outcome


def test_an_error_of_the_first_is_one_of_both(tiny: list[str], tmp_path: Path) -> None:
    """None waits for one that has ended."""
    config = train_config(tiny)
    begun(tmp_path / "run", train_config([*tiny, "model.layers=2"]))
    first, second = both(tmp_path / "run", config, config)
    assert first == second
    assert "holds another run; these settings differ: model.layers (2, now 1)" in first


def test_what_is_overridden_is_known_to_both(tiny: list[str], tmp_path: Path) -> None:
    config = train_config([*tiny, "run.override=true"])
    begun(tmp_path / "run", train_config([*tiny, "model.layers=2"]))
    assert both(tmp_path / "run", config, config) == [(True, ["model.layers (2, now 1)"])] * 2
    log = (tmp_path / "run" / "train.log").read_text()
    assert "run.override: from here on other settings hold: model.layers (2, now 1)" in log


def test_a_run_from_before_a_setting_was_there_has_its_default(tiny: list[str], tmp_path: Path) -> None:
    config = train_config(tiny)
    begun(tmp_path / "run", config)
    saved = config.as_dict()
    del saved["trainer"]["clip_norm"]
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(saved))
    folder = RunFolder(tmp_path / "run")
    assert claim(folder, config, ALONE)
    folder.release()
    clipped = replace(config, trainer=replace(config.trainer, clip_norm=2.0))
    with pytest.raises(ConfigError, match=r"trainer\.clip_norm \(1\.0, now 2\.0\)"):
        claim(RunFolder(tmp_path / "run"), clipped, ALONE)
