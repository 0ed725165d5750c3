"""A run's files as the pages read them."""

from typing import Any

from tolka.report.runs import FinishedRun, worst_and_best


def test_a_run_of_several_directions_has_a_curve_for_each() -> None:
    def validation(update: int, there: float, back: float) -> dict[str, Any]:
        directions = {"en-ko": {"bleu": there, "nll": 2.0}, "ko-en": {"bleu": back, "nll": 3.0}}
        return {"update": update, "valid_loss": 2.5, "bleu": (there + back) / 2, "directions": directions}

    metrics: list[dict[str, Any]] = [
        validation(10, 1.0, 3.0),
        {"update": 15, "train_loss": 2.0},
        validation(20, 5.0, 9.0),
    ]
    there, back = FinishedRun("mine", {}, {}, metrics, []).by_direction()
    assert (there.label, back.label) == ("en-ko", "ko-en")
    assert [(line["update"], line["bleu"], line["valid_loss"]) for line in back.validations] == [
        (10, 3.0, 3.0),
        (20, 9.0, 3.0),
    ]
    single = FinishedRun("mine", {}, {}, [{"update": 1, "valid_loss": 2.0, "bleu": 1.0}], [])
    assert single.by_direction() == [single]


def test_the_worst_and_the_best_lines_are_the_longest_of_equal_ones() -> None:
    lines = [{"chrf": value, "source": "x" * length} for value, length in ((0, 1), (0, 9), (50, 2), (100, 3), (100, 8))]
    assert worst_and_best(lines) == ([], [])  # too few to show six
    lines += [{"chrf": 70, "source": "x"}, {"chrf": 10, "source": "x"}]
    worst, best = worst_and_best(lines)
    assert [(line["chrf"], len(line["source"])) for line in worst] == [(0, 9), (0, 1), (10, 1)]
    assert [(line["chrf"], len(line["source"])) for line in best] == [(100, 8), (100, 3), (70, 1)]
