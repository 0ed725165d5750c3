"""What is kept of the models, and a disk that is full."""

from pathlib import Path
from typing import Any

import pytest
from rows import each_row
from trainer_bench import Bench, goes_on_to_the_same_weights

from tolka.errors import ConfigError, TolkaError
from tolka.training.options import TrainerConfig
from tolka.training.selection import to_average, to_keep

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


@each_row(
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
    bench = Bench(tmp_path, updates=24, keep_every=4, validate_every=12, keep_best=2)
    real, taken = bench.take, list[int]()

    def taking(scores: dict[str, Any], state: Any = None) -> Any:
        taken.append(bench.trainer.state.update)
        return real(scores, state)

    bench.take = taking  # type: ignore[method-assign]
    bench.trainer.fit()
    assert taken == [4, 8, 12, 12, 12, 16, 20, 24, 24, 24]  # with best/ and last/ after a validation
    assert [name for name, _ in bench.saved].count("last") == 2
    assert [int(name) for name, _ in bench.saved if name.isdigit()] == [4, 8, 12, 16, 20, 24]


def test_a_full_disk_ends_the_training_which_goes_on_from_what_was_saved(tmp_path: Path) -> None:
    options: dict[str, Any] = {"updates": 40, "keep_every": 15}
    straight = Bench(tmp_path / "a", **options)
    straight.trainer.fit()
    bench = Bench(tmp_path / "b", **options)
    real = bench.trainer._train_step

    def filling(window: Any) -> Any:
        bench.full = bench.trainer.state.update >= 12
        return real(window)

    bench.trainer._train_step = filling  # type: ignore[method-assign]
    with pytest.raises(TolkaError, match="0000015 could not be written"):
        bench.trainer.fit()
    assert bench.saved == [("best", 10), ("last", 10)]
    assert bench.trainer.state.update == 15
    goes_on_to_the_same_weights(bench, straight, tmp_path / "b", **options)


@pytest.mark.parametrize("key", ["keep_best", "keep_every"])
def test_complaints(key: str) -> None:
    options: dict[str, Any] = {key: -1}
    with pytest.raises(ConfigError, match=rf"trainer.{key} \(-1\) must be 0"):
        TrainerConfig(**options)
