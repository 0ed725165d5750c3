"""Tables over several trainings: their order, and means over seeds."""

from dataclasses import replace
from typing import Any

import pytest

from tolka.report.runs import FinishedRun
from tolka.report.sweep_tables import differing_settings, ranked_systems, sweep_tables


def run(label: str, dropout: float, seed: int, bleu: float, metric: str = "bleu") -> FinishedRun:
    """A training whose test lines have chrF2 of 10, 20, 30 and so on, more or less by what its BLEU is from 20."""
    config: dict[str, Any] = {
        "run": {"name": label, "dir": f"runs/{label}", "seed": seed, "origins": {"run.seed": f"file {label}"}},
        "model": {"name": "transformer", "dropout": dropout},
        "trainer": {"metric": metric},
    }
    lines = [
        {"test": "test", "source": "the same", "chrf": 10.0 * n + bleu - 20 + (-1) ** (n + seed)} for n in range(8)
    ]
    scores = {
        "validation": {"bleu": bleu, "valid_loss": -bleu},
        "facts": {"architecture": f"transformer, {round(10 * dropout)}M parameters"},
        "test": {"test": {"metrics": [{"name": "BLEU", "score": bleu}]}},
    }
    return FinishedRun(label, config, scores, [], [], lines)


RUNS = [
    run("a-seed=1", 0.1, 1, 10.0),
    run("a-seed=2", 0.1, 2, 12.0),
    run("b-seed=1", 0.3, 1, 30.0),
    run("b-seed=2", 0.3, 2, 34.0),
]


def cells(table: Any) -> list[tuple[str, list[str]]]:
    return [(row.label, list(row.cells)) for row in table.rows]


def test_only_what_differs() -> None:
    assert differing_settings(RUNS) == {"run.seed": ["1", "2", "1", "2"], "model.dropout": ["0.1", "0.1", "0.3", "0.3"]}


def test_from_the_best_to_the_worst_and_over_seeds() -> None:
    """A system is what differs by more than its seed, with the scores of all of its seeds."""
    [ranked] = sweep_tables(RUNS)
    assert cells(ranked)[0] == ("b-seed=2", ["34.00", "2", "0.3"])
    assert [row.label for row in ranked.rows] == ["b-seed=2", "b-seed=1", "a-seed=2", "a-seed=1"]
    best, other = ranked_systems(RUNS)
    # The lines' mean is 35, and BLEU less 20.
    assert (best.label, best.name, best.scores, best.beside) == ("b", "chrF2 of a line", [45.0, 49.0], None)
    assert (other.label, other.scores) == ("a", [25.0, 27.0])
    assert other.beside is not None
    assert other.beside[0] == pytest.approx(-21.0)
    # Two seeds each with deviations of 2.8 and 1.4: a difference of 21 is 13 standard errors, with 2 degrees of
    # freedom; p by Student 0.005.
    assert 0.001 <= other.beside[1] <= 0.02


def test_the_best_is_by_what_is_tested_and_lines_with_one_source_stay_apart() -> None:
    """By BLEU another would be the best; all lines have one source, and are told apart by their places."""
    lower = replace(RUNS[2], scores={**RUNS[2].scores, "test": {"test": {"metrics": [{"name": "BLEU", "score": 1.0}]}}})
    best, other = ranked_systems([RUNS[0], lower])
    assert (best.label, best.beside) == ("b-seed=1", None)
    assert best.scores == [pytest.approx(45.0)]
    assert other.beside is not None
    assert other.beside[0] == pytest.approx(-20)
    assert other.beside[1] < 0.05
    # Of trainings with other test lines nothing is said, and the first score ranks them.
    fewer = replace(lower, lines=lower.lines[:5])
    best, other = ranked_systems([RUNS[0], fewer])
    assert (best.label, best.name, best.beside, other.beside) == ("a-seed=1", "BLEU", None, None)


def test_a_lower_loss_is_better() -> None:
    lower = [run(each.label, 0.1, number, each.scores["validation"]["bleu"], "nll") for number, each in enumerate(RUNS)]
    assert [row.label for row in sweep_tables(lower)[0].rows] == [each.label for each in RUNS[::-1]]


def test_none_where_there_is_nothing_to_compare() -> None:
    assert sweep_tables(RUNS[:1]) == []
    assert ranked_systems(RUNS[:1]) == []
    [alone] = ranked_systems([replace(each, label=each.label[2:]) for each in RUNS[:2]])
    assert (alone.label, alone.beside, len(alone.runs)) == ("seed=1, seed=2", None, 2)
    assert sweep_tables([RUNS[0], run("e", 0.1, 1, 5.0)]) == []
    assert sweep_tables([RUNS[0], run("e", 0.3, 1, 5.0, "nll")]) == []
