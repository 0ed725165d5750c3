"""Which model is the best, which checkpoints are kept and averaged, and when validations count as stale.

The model has one weight that a test sets before each validation, and real model directories are written.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from random_model import tokenizer_of
from rows import each_row
from safetensors.torch import load_file

from tolka.distributed.ranks import ALONE
from tolka.metrics.validation import Validation
from tolka.model_directory.verify import TrainingSources
from tolka.models.transformer.config import TransformerConfig
from tolka.training.callbacks import Callback
from tolka.training.non_finite import LostError
from tolka.training.options import TrainerConfig
from tolka.training.parallel.base import Parallel
from tolka.training.run_folder import RunFolder
from tolka.training.selection import ModelSelection
from tolka.training.snapshots import Snapshots
from tolka.training.state import Clock, GivenUpError, TrainState
from tolka.training.warning_signs import Watch

TOKENIZER = tokenizer_of(shared=True)


class Selecting:
    """A selection whose validations are given: value and nll of each update, and of the mean."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.config = TrainerConfig(**options)
        model = TransformerConfig(d_model=4, heads=1, layers=1).build(
            TOKENIZER.source_size, TOKENIZER.target_size, True
        )
        objective = self.config.objective(model)
        self.weight: Any = model.encoder_norm.bias
        self.state, self.run, clock = TrainState(), RunFolder(folder), Clock()
        self.saved: list[str] = []
        callback = Callback()
        callback.on_save = lambda folder: self.saved.append(folder.name)  # type: ignore[method-assign]
        self.given = (0.0, 0.0)
        self.validated: list[tuple[int, str, float, bool]] = []
        settings = {"corpus": {"source": "xa", "target": "xb"}, "run": {"name": "made"}}
        self.selection = ModelSelection(
            self.config,
            Parallel(objective, ALONE),
            self.run,
            self,
            Snapshots(model, TOKENIZER, settings, TrainingSources(40), {}, folder, "store"),
            Watch(310, 0, self.run.log),
            clock,
            lambda: None,
            callback,
        )

    def __call__(self, update: int, what: str, tick: Any) -> Validation:
        self.validated.append((update, what, self.weight[0].item(), self.weight.requires_grad))
        tick()
        value, nll = self.given
        return Validation({"nll": nll, "ppl": 2.0, "bleu": value, "chrf": value}, "scored")

    def rehearse(self) -> None:
        raise NotImplementedError

    def seconds(self) -> float:
        raise NotImplementedError

    def validate(self, *results: tuple[float, float]) -> TrainState:
        """Validate after every tenth update; in update 10 all weights are 10, and so on."""
        for given in results:
            self.state.update += 10
            with torch.no_grad():
                self.weight.fill_(self.state.update)
            self.given = given
            self.selection.validate_and_select(self.state)
            self.run.drop_checkpoints(self.state.kept)
        return self.state

    def weight_in(self, name: str) -> float:
        return float(load_file(self.folder / name / "model.safetensors")["encoder_norm.bias"][0])

    def checkpoints(self) -> list[int]:
        return sorted(int(path.name) for path in (self.folder / "checkpoints").glob("*"))


def with_bleu(*values: float) -> list[tuple[float, float]]:
    return [(value, 1.0) for value in values]


@each_row(
    ("metric", "results", "best", "stale"),
    [
        ("bleu", [(1.0, 5.0), (3.0, 5.0), (2.0, 1.0)], 20, 1),
        ("bleu", [(3.0, 5.0), (3.0, 4.0), (3.0, 4.5)], 20, 1),  # equal: the lower nll
        ("bleu", [(3.0, 4.0), (3.0, 4.0)], 10, 1),  # equal in both: the older
        ("bleu", [(3.004, 5.0), (3.001, 4.0), (3.002, 6.0)], 20, 1),  # 3.00, each of them
        ("bleu", [(0.004, 5.0), (0.0, 4.0), (0.001, 3.0)], 30, 0),  # 0.00, each of them
        ("bleu", [(3.0, 1.0), (3.01, 9.0)], 20, 0),
        ("bleu", [(3.0, 1.0), (2.0, 1.0), (1.0, 1.0), (0.0, 1.0)], 10, 3),
        ("nll", [(9.0, 2.0), (1.0, 1.5), (9.0, 1.6)], 20, 1),  # less is better
        ("nll", [(0.0, 1.5001), (0.0, 1.5)], 20, 0),
    ],
)
def test_which_is_the_best(
    tmp_path: Path, metric: str, results: list[tuple[float, float]], best: int, stale: int
) -> None:
    folder = tmp_path / f"{metric}{results}"
    folder.mkdir()
    made = Selecting(folder, metric=metric)
    state = made.validate(*results)
    assert (state.best_update, state.stale, state.validated_at) == (best, stale, 10 * len(results))
    value, nll = results[best // 10 - 1]
    assert (state.best, state.best_nll) == (value if metric == "bleu" else nll, nll)
    assert made.weight_in("best") == best
    assert made.checkpoints() == []


def test_what_is_written_of_a_validation(tmp_path: Path) -> None:
    made = Selecting(tmp_path)
    made.validate((3.0, 5.0), (2.0, 4.0))
    lines = made.run.history()
    assert [(line["update"], line["bleu"], line["valid_loss"]) for line in lines] == [(10, 3.0, 5.0), (20, 2.0, 4.0)]
    scores = json.loads((tmp_path / "best" / "scores.json").read_text())
    assert (scores["update"], scores["validation"]["bleu"], scores["validation"]["valid_loss"]) == (10, 3.0, 5.0)
    log = (tmp_path / "train.log").read_text()
    assert [line.rpartition("scored ")[2] for line in log.splitlines()] == ["(best so far)", "(best 3.00 at 10)"]


@each_row(
    ("options", "values", "expected"),
    [
        ({"average": 2}, [5.0, 9.0, 1.0, 2.0], [30, 40]),  # the last
        ({"keep_best": 2}, [5.0, 9.0, 1.0, 7.0], [20, 40]),
        ({"average": 2, "keep_best": 1}, [9.0, 5.0, 1.0, 2.0], [10, 30, 40]),
        ({"keep_every": 20}, [5.0, 9.0, 1.0, 7.0], [20, 40]),
        ({"keep_best": 1, "keep_every": 30}, [9.0, 5.0, 1.0, 2.0], [10, 30]),
    ],
)
def test_which_checkpoints_are_kept(
    tmp_path: Path, options: dict[str, int], values: list[float], expected: list[int]
) -> None:
    folder = tmp_path / str(options)
    folder.mkdir()
    made = Selecting(folder, **options)
    state = made.validate(*with_bleu(*values))
    assert made.checkpoints() == expected == [int(update) for update in state.kept]
    assert [made.weight_in(f"checkpoints/{update:07d}") for update in expected] == expected
    assert {*state.kept_nll} <= {*state.kept}


def test_of_checkpoints_with_equal_scores_the_lower_loss_is_kept(tmp_path: Path) -> None:
    made = Selecting(tmp_path, keep_best=1)
    made.validate((3.0, 4.0), (3.0, 5.0), (3.0, 4.5))
    assert made.checkpoints() == [10]


def averaged(made: Selecting, bleu: float) -> bool:
    made.given = (bleu, 1.0)
    return made.selection.average(made.state)


def test_the_mean_of_the_last_checkpoints_becomes_the_best(tmp_path: Path) -> None:
    """Of the weights 20, 30 and 40 it is 30; training goes on with 40, and a mean is no validation of it."""
    made = Selecting(tmp_path, average=3)
    state = made.validate(*with_bleu(7.0, 1.0, 2.0, 3.0))
    assert averaged(made, 8.0)
    assert made.validated[-1][1:3] == ("mean", 30.0)
    assert (state.best, state.best_update, state.best_mean_of) == (8.0, 40, [20, 30, 40])
    assert (made.weight_in("best"), made.weight[0].item()) == (30.0, 40.0)
    assert json.loads((tmp_path / "best" / "scores.json").read_text())["mean_of_updates"] == [20, 30, 40]
    assert (state.stale, state.averaged_at) == (3, 40)
    assert not averaged(made, 9.0)  # once for each update
    assert len(made.validated) == 5


def test_a_worse_mean_leaves_the_best(tmp_path: Path) -> None:
    made = Selecting(tmp_path, average=2)
    state = made.validate(*with_bleu(7.0, 6.0))
    assert averaged(made, 5.0)
    assert (state.best, state.best_update, state.best_mean_of, state.stale) == (7.0, 10, [], 1)
    assert (made.weight_in("best"), made.weight[0].item()) == (10.0, 20.0)


@each_row(("average", "values"), [(0, [1.0, 2.0, 3.0]), (2, [1.0])])
def test_without_two_checkpoints_there_is_no_mean(tmp_path: Path, average: int, values: Sequence[float]) -> None:
    folder = tmp_path / str(average)
    folder.mkdir()
    made = Selecting(folder, average=average)
    made.validate(*with_bleu(*values))
    assert not averaged(made, 9.0)
    assert len(made.validated) == len(values)


def test_a_mean_that_is_given_up_is_none(tmp_path: Path) -> None:
    made = Selecting(tmp_path, average=2)
    made.validate(*with_bleu(7.0, 6.0))

    def stop() -> None:
        raise GivenUpError

    made.selection.check_stop = stop
    assert not averaged(made, 9.0)
    assert (made.state.best, made.weight[0].item(), made.state.averaged_at) == (7.0, 20.0, 0)
    made.selection.check_stop = lambda: None
    assert averaged(made, 9.0)
    assert made.state.best == 9.0


def test_the_start_is_the_best_until_another_is_better(tmp_path: Path) -> None:
    """It is no checkpoint to be averaged."""
    made = Selecting(tmp_path, average=2)
    made.given = (5.0, 1.0)
    made.selection.select_start(made.state)
    assert (made.state.best, made.state.best_update, made.state.validated_start) == (5.0, 0, True)
    state = made.validate(*with_bleu(4.0, 6.0))
    assert (state.best, state.best_update, state.stale) == (6.0, 20, 0)
    assert made.checkpoints() == [10, 20]


@pytest.mark.parametrize("nll", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_selects_nothing(tmp_path: Path, nll: float) -> None:
    made = Selecting(tmp_path)
    made.validate((3.0, 1.0))
    with pytest.raises(LostError, match="the validation loss is"):
        made.validate((9.0, nll))
    assert (made.state.best, made.state.best_update) == (3.0, 10)
    assert made.selection.objective.training
