"""Estimates of quality: their features, by hand, and the calibration in a model's scores."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rows import each_row
from sacrebleu import sentence_chrf

from tolka.errors import CheckpointError
from tolka.translation.quality import LOW_PROBABILITY, Calibration, Features, LinearMap, estimate, features_of
from tolka.translation.results import Candidate, Translation

_PLAIN, _AGREEING = LinearMap([10.0, 80.0, 5.0], 40.0), LinearMap([0.0, 40.0, 0.0, 0.5], 50.0)
_SPREAD = [[0.005, 0.0, 0.0], [0.0, 0.02, 0.0], [0.0, 0.0, 0.1]]
CALIBRATION = Calibration(_PLAIN, _AGREEING, 200, "beam", 8.0, _SPREAD)


class Scorer:
    """Scores each target id by minus itself."""

    def token_scores(self, pairs: Sequence[tuple[list[int], list[int]]], tick: Any = None) -> list[list[float]]:
        return [[-float(token) for token in target] for _, target in pairs]


def test_features_of_a_translation() -> None:
    texts = ["the old boat", "the old ship", "an old boat"]
    features = Features.of([math.log(0.5), math.log(0.125)], texts)
    assert features.mean == pytest.approx(0.25)
    assert features.lowest == pytest.approx(0.125)
    expected = [sentence_chrf(texts[0], [other]).score for other in texts[1:]]
    assert features.agreement == pytest.approx(sum(expected) / 2)
    assert Features.of([0.0], ["the old boat"]).agreement is None


def test_without_a_calibration_it_is_the_mean_probability() -> None:
    found = estimate(Features(0.75, 0.1, 90.0), None)
    assert (found.kind, found.value, found.is_low) == ("probability", 0.75, False)
    assert estimate(Features(LOW_PROBABILITY - 0.01, 0.3, None), None).is_low


def test_a_calibration_gives_the_expected_chrf() -> None:
    alone = estimate(Features(0.5, 0.2, None), CALIBRATION)
    assert (alone.kind, alone.is_low) == ("chrf", False)
    assert alone.value == pytest.approx(10 + 40 + 1)
    agreeing = estimate(Features(0.5, 0.2, 40.0), CALIBRATION)
    assert agreeing.is_low
    assert agreeing.value == pytest.approx(20 + 20)
    assert estimate(Features(1.0, 1.0, 100.0), CALIBRATION).value == pytest.approx(90)
    assert estimate(Features(0.0, 0.0, 0.0), CALIBRATION).value == 0
    outside = replace(CALIBRATION, plain=LinearMap([0.0, 300.0, 0.0], 0.0), with_agreement=None)
    assert estimate(Features(1.0, 1.0, 5.0), outside).value == 100


def test_segments_of_a_text_count_together_and_a_blank_text_has_no_features() -> None:
    two = Translation([Candidate("a b", [([4], [1, 2]), ([5], [3])], 0.0, True)])
    blank = Translation([Candidate("", [], 0.0, True)])
    first, none, last = features_of(Scorer(), [two, blank, two])
    assert none is None
    assert first == last
    assert first is not None
    assert estimate(first, None).value == pytest.approx(math.exp(-2))


def test_a_calibration_survives_writing() -> None:
    for calibration in (CALIBRATION, replace(CALIBRATION, with_agreement=None)):
        assert Calibration.by_direction({"quality": calibration.as_dict()}) == {"": calibration}
    assert Calibration.by_direction({"test": {}}) == {}


def test_the_forecast_of_a_file_is_the_prediction_interval_of_a_regression() -> None:
    found = CALIBRATION.forecast(np.array([50.0, 25.0, 10.0]))
    at_mean = 1 / 50 + 0.005 + 0.5**2 * 0.02 + 0.2**2 * 0.1
    width = 2.262 * 8 * math.sqrt(at_mean)  # Student's 97.5 % quantile of 9 degrees of freedom
    assert found == pytest.approx((51, 51 - width, 51 + width), rel=1e-3)
    assert CALIBRATION.forecast(np.array([1.0, 1.0, 1.0])).high == 100


@each_row(
    "damage",
    [
        {"plain": None},
        {"plain": {"weights": [1.0], "low": 3.0}},
        {"plain": {"weights": ["x"] * 3, "low": 0}},
        {"spread": [[1.0]]},
        {"spread": [[math.nan] * 3] * 3},
        {"error": math.inf},
    ],
)
def test_a_damaged_calibration_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match=r"scores.json: the calibration of quality estimates is damaged"):
        Calibration.by_direction({"quality": {**CALIBRATION.as_dict(), **damage}})
