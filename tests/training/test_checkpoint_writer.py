"""What is kept of the models: in order, behind training's back, tried again when the disk is full."""

from pathlib import Path
from typing import Any

import pytest
from rows import each_row
from trainer_bench import Bench, assert_same

from tolka.errors import ConfigError, TolkaError
from tolka.model_directory.resume_state import ResumeState
from tolka.training.checkpoint_writer import CheckpointWriter, to_average, to_keep
from tolka.training.options import TrainerConfig
from tolka.training.run_folder import RunFolder


class Job:
    """Writes its name into a list, or cannot."""

    is_copy = True

    def with_state(self, state: ResumeState) -> "Job":
        return self

    def __init__(self, done: list[str], name: str, fails: int = 0) -> None:
        self.done, self.name, self.fails = done, name, fails

    def write(self, folder: Path) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError(28, "No space left on device", "model.safetensors")
        self.done.append(f"{folder.name} {self.name}")


def test_in_order_and_what_counts_on_it_afterwards(tmp_path: Path) -> None:
    done: list[str] = []
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "best", Job(done, "1"))
    keeper.save(tmp_path / "last", Job(done, "1"))
    keeper.afterwards(lambda: done.append("then"))
    keeper.finish()
    assert done == ["best 1", "last 1", "then"]
    assert keeper.has(tmp_path / "last")


def test_what_is_no_copy_is_waited_for_and_copied_where_it_fails(tmp_path: Path) -> None:
    class Lent(Job):
        is_copy = False

        def copied(self) -> Job:
            return Job(self.done, f"{self.name} as it was")

    done: list[str] = []
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "best", Lent(done, "1"))
    assert done == ["best 1"]
    keeper.save(tmp_path / "last", Lent(done, "1", fails=1))
    keeper.finish()
    assert done == ["best 1", "last 1 as it was"]


def test_what_fails_is_told_and_tried_again(tmp_path: Path) -> None:
    done: list[str] = []
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "best", Job(done, "1", fails=1))
    keeper.afterwards(lambda: done.append("too soon"))
    keeper.wait()
    assert done == []
    assert not keeper.has(tmp_path / "best")
    assert "best could not be written (No space left on device); training continues, what stood there before" in (
        tmp_path / "train.log"
    ).read_text("utf-8")
    keeper.retry()
    keeper.save(tmp_path / "last", Job(done, "1"))
    keeper.afterwards(lambda: done.append("then"))
    keeper.finish()
    assert done == ["best 1", "last 1", "then"]
    assert "best is written now" in (tmp_path / "train.log").read_text("utf-8")


def test_a_newer_model_takes_the_place_of_what_failed(tmp_path: Path) -> None:
    done: list[str] = []
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "best", Job(done, "old", fails=9))
    keeper.wait()
    keeper.save(tmp_path / "best", Job(done, "new"))
    keeper.finish()
    assert done == ["best new"]


def test_what_is_not_needed_is_told_of_and_forgotten(tmp_path: Path) -> None:
    done: list[str] = []
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "0000010", Job(done, "1", fails=1), needed=False)
    keeper.afterwards(lambda: done.append("then"))
    keeper.finish()
    assert done == ["then"]
    assert "0000010 could not be written" in (tmp_path / "train.log").read_text("utf-8")


def test_what_never_gets_written_is_an_error_at_the_end(tmp_path: Path) -> None:
    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "last", Job([], "1", fails=2))
    with pytest.raises(TolkaError, match=r"last could not be written \(No space left on device\): free some space"):
        keeper.finish()


def test_a_mistake_of_ours_is_not_hidden(tmp_path: Path) -> None:
    class Broken(Job):
        def write(self, folder: Path) -> None:
            raise ZeroDivisionError

    keeper: Any = CheckpointWriter(RunFolder(tmp_path))
    keeper.save(tmp_path / "last", Broken([], "1"))
    with pytest.raises(ZeroDivisionError):
        keeper.finish()


KEPT: dict[str, float | None] = {"100": 5.0, "200": 9.0, "300": None, "400": 7.0, "500": 9.0, "600": 1.0}


@each_row(
    ("options", "expected"),
    [
        ({}, []),
        ({"average": 2}, [500, 600]),
        ({"keep_best": 1}, [500]),  # of equals the newer
        ({"keep_best": 3}, [200, 400, 500]),
        ({"keep_best": 3, "metric": "nll"}, [100, 400, 600]),
        ({"keep_every": 300}, [300, 600]),
        ({"keep_best": 2, "keep_every": 300, "average": 2}, [200, 300, 500, 600]),
    ],
    ids=str,
)
def test_which_checkpoints_stay(options: dict[str, Any], expected: list[int]) -> None:
    config = TrainerConfig(**options)
    assert list(map(int, to_keep(KEPT, {}, config))) == expected
    assert set(to_average(KEPT, config)) <= to_keep(KEPT, {}, config).keys()


@pytest.mark.parametrize(
    ("nll", "best"),
    [
        ({"200": 3.0, "500": 2.0}, "500"),
        ({"200": 2.0, "500": 3.0}, "200"),
        ({"200": 2.0}, "200"),  # not known of the other, which an older version validated
        ({"400": 1.0}, "500"),  # of no equal: the newer
    ],
    ids=str,
)
def test_of_checkpoints_with_one_score_the_lower_loss_stays(nll: dict[str, float], best: str) -> None:
    assert list(to_keep(KEPT, nll, TrainerConfig(keep_best=1))) == [best]


def folders(run: Path) -> list[int]:
    return sorted(int(path.name) for path in (run / "checkpoints").glob("*"))


def test_the_best_and_every_so_many_stay_on_disk(tmp_path: Path) -> None:
    """Also those of updates that are not validated."""

    class Folders(Bench):
        def take(self, *given: Any) -> Any:
            shot = super().take(*given)
            real = shot.write

            def write(folder: Path) -> None:
                real(folder)
                folder.mkdir(parents=True, exist_ok=True)

            shot.write = write  # type: ignore[method-assign]
            return shot

    bench = Folders(tmp_path, keep_best=2, keep_every=15, updates=50, scores=[3.0, 9.0, 4.0, 1.0, 2.0])
    assert bench.trainer.fit().kept == {"15": None, "20": 9.0, "30": 4.0, "45": None}
    assert folders(tmp_path) == [15, 20, 30, 45]


def test_every_checkpoint_has_the_weights_of_its_own_update(tmp_path: Path) -> None:
    """A model is copied once for all the places where it goes, and never for another update's."""
    bench = Bench(tmp_path, updates=24, keep_every=4, validate_every=12, keep_best=2)
    seen: dict[str, Any] = {}
    real = bench.take

    def taken(scores: dict[str, Any]) -> Any:
        shot = real(scores)
        assert str(bench.trainer.state.update) not in seen
        seen[str(bench.trainer.state.update)] = shot
        return shot

    bench.take = taken  # type: ignore[method-assign]
    bench.trainer.fit()
    assert list(seen) == ["4", "8", "12", "16", "20", "24"]
    assert [name for name, _ in bench.saved].count("last") == 2
    assert [int(name) for name, _ in bench.saved if name.isdigit()] == [4, 8, 12, 16, 20, 24]


@pytest.mark.slow
def test_a_full_disk_does_not_end_the_training(tmp_path: Path) -> None:
    """The model of the next validation is written, and what is trained is not touched by any of it."""
    straight = Bench(tmp_path / "a", updates=40)
    straight.trainer.fit()
    bench = Bench(tmp_path / "b", updates=40)
    real = bench.trainer._train_step

    def filling(window: Any) -> Any:
        bench.full = 10 <= bench.trainer.state.update < 25
        return real(window)

    bench.trainer._train_step = filling  # type: ignore[method-assign]
    bench.trainer.fit()
    assert bench.saved == [(folder, update) for update in (10, 30, 40) for folder in ("best", "last")]
    assert_same(straight.weights, bench.weights)
    assert "could not be written (No space left on device)" in (tmp_path / "b" / "train.log").read_text("utf-8")


def test_a_disk_that_stays_full_is_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, updates=20)
    bench.full = True
    with pytest.raises(TolkaError, match="could not be written"):
        bench.trainer.fit()
    updates = [line["update"] for line in RunFolder(tmp_path).history()]
    assert max(updates) == 20


@pytest.mark.parametrize("key", ["keep_best", "keep_every"])
def test_complaints(key: str) -> None:
    options: dict[str, Any] = {key: -1}
    with pytest.raises(ConfigError, match=rf"trainer.{key} \(-1\) must be 0"):
        TrainerConfig(**options)
