"""Tables over several trainings: order, means over seeds, and how much of the differences a setting explains."""

import math
import random
import re
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


def test_which_differences_from_the_best_may_be_chance() -> None:
    """By lines of the test set: d is better than c in half of them, and than a in all."""
    draw = random.Random(1)
    base = [draw.uniform(20, 60) for _ in range(60)]
    lines = {
        "d": base,
        "c": [value + 3 * (-1) ** number for number, value in enumerate(base)],
        "b": [value - draw.uniform(0, 6) for value in base],
        "a": [value - 5 for value in base],
    }
    runs = [
        replace(each, lines=[{"source": str(n), "chrf": value} for n, value in enumerate(lines[each.label])])
        for each in RUNS
    ]
    ranked = cells(sweep_tables(runs)[0])
    assert sweep_tables(runs)[0].columns[1].name == "chrF2 beside the best"
    assert ranked[0][1][1] == ""
    assert ranked[1][1][1] == "+0.0, p = 1.000: may be chance"
    assert re.fullmatch(r"-[23]\.\d, p = 0\.003", ranked[2][1][1])
    assert ranked[3][1][1] == "-5.0, p = 0.003"
    # Of runs with other test sets, nothing is said.
    runs[0] = replace(runs[0], lines=[{"source": "x", "chrf": 1.0}])
    assert cells(sweep_tables(runs)[0])[0] == ("d", ["34.00", "2", "0.3"])


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
