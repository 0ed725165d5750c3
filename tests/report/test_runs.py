"""A run's files as the pages read them."""

from typing import Any

from tolka.report.runs import FinishedRun


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
