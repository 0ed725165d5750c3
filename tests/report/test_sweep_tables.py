"""Tables over several trainings: order, means over seeds, and how much of the differences a setting explains."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tolka.report.runs import FinishedRun
from tolka.report.sweep_tables import differing_settings, share_of_variance, sweep_tables


def run(label: str, dropout: float, seed: int, bleu: float, metric: str = "bleu") -> FinishedRun:
    config: dict[str, Any] = {
        "run": {"name": label, "dir": f"runs/{label}", "seed": seed},
        "model": {"name": "transformer", "dropout": dropout},
        "trainer": {"metric": metric},
    }
    return FinishedRun(label, config, {"validation": {"bleu": bleu, "valid_loss": -bleu}}, [], [])


RUNS = [run("a", 0.1, 1, 10.0), run("b", 0.1, 2, 12.0), run("c", 0.3, 1, 30.0), run("d", 0.3, 2, 34.0)]


def cells(table: Any) -> list[tuple[str, list[str]]]:
    return [(row.label, [text for text, _ in row.cells]) for row in table.rows]


def test_only_what_differs() -> None:
    assert differing_settings(RUNS) == {"run.seed": ["1", "2", "1", "2"], "model.dropout": ["0.1", "0.1", "0.3", "0.3"]}


def test_from_the_best_to_the_worst_and_over_seeds() -> None:
    ranked, means, importance = sweep_tables(RUNS)
    assert cells(ranked)[0] == ("d", ["34.00", "2", "0.3"])
    assert [row.label for row in ranked.rows] == ["d", "c", "b", "a"]
    assert cells(means) == [
        ("model.dropout=0.3", ["32.00", f"{math.sqrt(8):.2f}", "2"]),
        ("model.dropout=0.1", ["11.00", f"{math.sqrt(2):.2f}", "2"]),
    ]
    # Between dropouts: 4 * 10.5 ** 2 = 441 of a total of 451; between seeds: 4 * 1.5 ** 2 = 9.
    assert cells(importance) == [("model.dropout", ["98 %"]), ("run.seed", ["2 %"])]


def test_many_settings_stand_one_below_the_other() -> None:
    """As of models of different kinds, whose columns no screen has room for."""
    runs = [
        replace(each, config={**each.config, "model": {f"x{n}": f"{each.label}{n}" for n in range(7)}})
        for each in RUNS[2:]
    ]
    ranked = sweep_tables(runs)[0]
    assert ranked.heading == "setting"
    assert [column.name for column in ranked.columns] == ["d", "c"]
    assert cells(ranked)[0] == ("BLEU, validation", ["34.00", "30.00"])
    assert cells(ranked)[-1] == ("model.x6", ["d6", "c6"])


def test_a_lower_loss_is_better() -> None:
    lower = [run(each.label, 0.1, number, each.scores["validation"]["bleu"], "nll") for number, each in enumerate(RUNS)]
    assert [row.label for row in sweep_tables(lower)[0].rows] == ["d", "c", "b", "a"]


def test_none_where_there_is_nothing_to_compare() -> None:
    assert sweep_tables(RUNS[:1]) == []
    assert sweep_tables([RUNS[0], run("e", 0.1, 1, 5.0)]) == []
    assert sweep_tables([RUNS[0], run("e", 0.3, 1, 5.0, "nll")]) == []


@pytest.mark.parametrize(
    ("settings", "values", "share"),
    [
        (["1", "2", "3"], [1.0, 2.0, 3.0], 1.0),
        (["0.001", "0.01", "0.1"], [3.0, 2.0, 1.0], 1.0),
        (["1", "2", "3", "4"], [2.0, 1.0, 4.0, 3.0], 0.36),  # rank correlation 1 - 6 * 4 / 60 = 0.6
        (["a", "b", "c"], [1.0, 2.0, 3.0], 0.0),
        (["a", "a", "b"], [5.0, 5.0, 5.0], 0.0),
    ],
)
def test_share_of_variance(settings: Sequence[str], values: Sequence[float], share: float) -> None:
    assert share_of_variance(settings, values) == pytest.approx(share)
