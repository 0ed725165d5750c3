"""Calibrating estimates of quality on synthetic features, and by the command."""

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import correlation
from typing import Any

import numpy as np
import pytest

from conftest import sentences, write_split
from tolka.evaluation.calibration import calibrate_translator, estimate_quality, fit_calibration
from tolka.search.options import BeamConfig
from tolka.text.characters import CharacterForm
from tolka.translation.opening import open_model
from tolka.translation.quality import Features, estimate

Command = Callable[..., Any]
QUICK = ["decoding.device=cpu", "search.max_length_factor=0", "search.max_length_extra=9"]


def synthetic(lines: int, noise: float, seed: int = 1) -> tuple[list[Features], list[float]]:
    """Features, and a chrF that is linear in them but for noise."""
    draw = random.Random(seed)
    features = [Features(draw.uniform(0.2, 0.9), draw.uniform(0, 0.5), draw.uniform(20, 90)) for _ in range(lines)]
    chrf = [5 + 60 * f.mean + 10 * f.lowest + 0.2 * (f.agreement or 0) + draw.gauss(0, noise) for f in features]
    return features, chrf


def test_a_linear_relation_is_found() -> None:
    features, chrf = synthetic(500, 0.0)
    found = fit_calibration(features, chrf, "")
    assert found.calibration.with_agreement is not None
    assert found.calibration.with_agreement.weights == pytest.approx([5, 60, 10, 0.2])
    best = found.qualities[-1]
    assert [best.pearson, best.worst_found] == pytest.approx([1, 1])
    for one, value in zip(features, chrf, strict=True):
        assert estimate(one, found.calibration).value == pytest.approx(value)
    low = [estimate(one, found.calibration).is_low for one in features]
    assert sum(low) / len(low) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(("drift", "calibrated_on"), [(0.0, 100), (0.0, 1000), (6.0, 4000)])
def test_the_forecast_of_a_file_is_right_in_nine_of_ten(drift: float, calibrated_on: int) -> None:
    """Lines in a row share what the features do not tell, or nothing; files of the calibration's kind."""
    draw = random.Random(1)

    def text(lines: int) -> tuple[list[Features], list[float]]:
        features, chrf = synthetic(lines, 8.0, draw.randrange(10**6))
        shared = [draw.gauss(0, drift) for _ in range(0, lines, 50)]
        return features, [value + shared[number // 50] for number, value in enumerate(chrf)]

    right = 0
    for _ in range(50):
        found = fit_calibration(*text(calibrated_on), "").calibration
        for lines in (40, 50, 200, 2000):
            features, chrf = text(lines)
            interval = found.forecast(np.sum([each.values(False) for each in features], axis=0))
            right += interval.low <= sum(chrf) / len(chrf) <= interval.high
    assert right >= 180


def test_the_error_of_lines_that_share_nothing_is_theirs() -> None:
    features, chrf = synthetic(4000, 8.0)
    found = fit_calibration(features, chrf, "").calibration
    # Of a line's chrF the plain map does not know the part of the agreement: 0.2 times a uniform number of width 70.
    assert found.error == pytest.approx((8.0**2 + (0.2 * 70) ** 2 / 12) ** 0.5, rel=0.5)


def test_agreement_helps_only_where_it_tells_something() -> None:
    features, chrf = synthetic(500, 5.0)
    _, plain, both = fit_calibration(features, chrf, "").qualities
    assert both.pearson > plain.pearson + 0.05
    for count, expected, measured in both.bins:
        assert count == 100
        assert expected == pytest.approx(measured, abs=2)


def test_noise_alone_is_not_taken_for_a_relation() -> None:
    """Estimates of lines that the map was fitted on would correlate: here they are of other lines."""
    draw = random.Random(1)
    features, _ = synthetic(100, 0.0)
    for quality in fit_calibration(features, [draw.uniform(0, 100) for _ in features], "").qualities[1:]:
        assert quality.pearson < 0.15


def test_the_correlation_is_that_of_the_standard_library() -> None:
    x, y = [0.1, 0.5, 0.5, 0.9, 0.3], [10.0, 20.0, 60.0, 50.0, 5.0]
    found = estimate_quality("", x, y)
    assert found.pearson == pytest.approx(correlation(x, y))
    assert found.worst_found == 0.0  # the worst line has the second lowest estimate
    assert np.isnan(estimate_quality("", [1.0] * 5, y).pearson)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write_split(tmp_path / "pairs", [("", "x"), *sentences(150, seed=9)])
    return tmp_path / "pairs"


@pytest.mark.slow
def test_the_command_writes_the_calibration_into_the_model(
    command: Command, trained: Path, pairs: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained / "best", tmp_path / "model")
    files = [f"source={pairs}.xa", f"reference={pairs}.xb"]
    before = command("mt-translate", tmp_path / "model", *QUICK, "output.format=jsonl", stdin=b"ferry .\n\n")
    assert set(json.loads(before.out.splitlines()[0])["quality"]) == {"probability"}
    outcome = command("mt-eval", "calibrate", tmp_path / "model", *files, *QUICK, "search.n_best=3")
    assert (outcome.code, outcome.err) == (0, "")
    assert "150 lines; chrF2 of each sentence" in outcome.out
    assert "probabilities and agreement" in outcome.out
    translator = open_model(tmp_path / "model")
    assert translator.calibration is not None
    assert translator.calibration.lines == 150
    for n_best in (1, 3):
        options = [*QUICK, "output.format=jsonl", f"search.n_best={n_best}"]
        after = command("mt-translate", tmp_path / "model", *options, stdin=b"ferry .\n\n")
        first, blank = map(json.loads, after.out.splitlines())
        assert 0 <= first["quality"]["chrf"] <= 100
        assert blank["quality"] is None
        forecast = re.search(r"expected: a mean chrF2 of (\S+) \((\S+) to (\S+)\) over 1 line, if the text", after.err)
        assert forecast
        mean, low, high = map(float, forecast.groups())
        assert low <= mean <= high
        if n_best == 1:  # a forecast leaves out the agreement, which some lines lack
            assert mean == pytest.approx(first["quality"]["chrf"], abs=0.06)
        assert first["hypotheses"][0]["text"] == json.loads(before.out.splitlines()[0])["hypotheses"][0]["text"]
    again = command("mt-eval", "calibrate", tmp_path / "model", *files, *QUICK)
    assert again.code == 0
    assert "note: with several translations of each line (search.n_best=5)" in again.err
    told = json.loads(command("mt-eval", "calibrate", tmp_path / "model", *files, *QUICK, "--json").out)
    assert told["lines"] == 150
    assert [each["name"] for each in told["estimates"]] == ["mean probability alone", "token probabilities"]
    calibration = open_model(tmp_path / "model").calibration
    assert calibration is not None
    assert calibration.with_agreement is None
    together = open_model([tmp_path / "model", trained])
    assert together.calibration is None


def test_a_line_that_the_model_reads_as_blank_is_left_out(trained: Path) -> None:
    translator, form = open_model(trained / "best"), CharacterForm(control="strip")
    translator._characters = form
    sources, references = zip(("\u200b", "x"), *sentences(100, seed=9), strict=True)
    assert calibrate_translator(translator, sources, references, BeamConfig()).calibration.lines == 100


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["MODEL", "source=S"], "calibrate takes a model, source=FILE and reference=FILE"),
        (["MODEL", "source=S", "reference=R", "hypothesis=R"], "calibrate takes a model, source=FILE and"),
        (["MODEL,MODEL", "source=S", "reference=R"], "calibrate takes one model, not 2"),
        (["source=S", "reference=R"], "calibrate takes one model: mt-eval calibrate MODEL"),
        (["MODEL", "source=S", "reference=few"], "has 151 lines but"),
        (["MODEL", "source=few", "reference=few"], "a calibration needs at least 100 lines with both sides, and"),
        (
            ["MODEL", "source=same", "reference=same"],
            "a calibration needs different lines, and of 100 there are 1 with",
        ),
        (
            ["MODEL", "source=S", "reference=R", "-o", "out"],
            "-o and --lines take one system's translations, and not those of calibrate",
        ),
    ],
)
def test_bad_arguments(
    command: Command, trained: Path, pairs: Path, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    (tmp_path / "few").write_text("ferry .\n" * 8)
    (tmp_path / "same").write_text("ferry .\n" * 100)
    names = {
        "MODEL": trained,
        "=S": f"={pairs}.xa",
        "=R": f"={pairs}.xb",
        "few": tmp_path / "few",
        "same": tmp_path / "same",
    }
    given = []
    for each in arguments:
        for name, meaning in names.items():
            each = each.replace(name, str(meaning))
        given.append(each)
    outcome = command("mt-eval", "calibrate", *given, *QUICK)
    assert outcome.code != 0
    assert complaint in outcome.error
