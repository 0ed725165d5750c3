"""What changes of a text cost: made-up translators whose cost is known."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tolka.errors import DataError
from tolka.evaluation.robustness import Cost, measure
from tolka.metrics.scores import Score
from tolka.model_directory.write import rescore
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair

WORDS = ["river", "stone", "bread", "window", "Anna", "garden", "silver", "morning", "travel", "7", "12 boats"]
PAIRS = [Pair(f"{a} {b} {c}.", f"{a} {b} {c}.") for a in WORDS for b in WORDS[:6] for c in WORDS[:2]]


def costs_of(
    translate: Callable[[str], str], pairs: Sequence[Pair] = PAIRS, own: tuple[str, Score] | None = None
) -> dict[str, Cost]:
    found = measure(lambda texts: [translate(text) for text in texts], pairs, Direction("", "en"), own)
    costs = [cost.after - cost.before for cost in found.costs]
    assert costs == sorted(costs)
    return {cost.name: cost for cost in found.costs}


def test_a_translator_that_copies_loses_where_its_source_is_no_translation_alone() -> None:
    """It copies what both sides have changed, and corrects neither typing errors nor title case."""
    found = costs_of(lambda text: text)
    kept = "capitals", "no end mark", "other numbers", "unknown names", "addresses", "emoji", "tags and placeholders"
    for name in (*kept, "two sentences on a line", "five sentences on a line"):
        assert (found[name].before, found[name].after) == pytest.approx((100, 100)), name
        assert found[name].interval == pytest.approx((0, 0))
        assert found[name].examples == []
    for name in ("typing errors", "title case"):
        assert found[name].is_certain, name
    # chrF leaves blanks out, but neither characters of no width nor soft hyphens.
    assert found["doubled and invisible blanks"].after < 100
    assert found["unknown names"].lines == sum("Anna" in pair.source for pair in PAIRS)
    example = found["typing errors"].examples[0]
    assert example.translation == example.source != example.reference == example.before


def test_a_translator_without_capitals_loses_all_in_them() -> None:
    found = costs_of(lambda text: "" if text.isupper() else text)
    assert found["capitals"].after == 0
    assert found["capitals"].interval == pytest.approx((-100, -100))


def test_short_lines_are_compared_with_the_others() -> None:
    pairs = [*PAIRS[:90], *(Pair("no.", "no.") for _ in range(10))]
    found = costs_of(lambda text: "yes" if text == "no." else text, pairs)
    short = found["very short lines, beside others"]
    assert (short.lines, short.after) == (10, 0)
    assert short.before == pytest.approx(100)


def test_the_text_itself_is_compared_with_the_models_own_test_set() -> None:
    own = "news", Score("chrF2", 80.0, (77.0, 83.0), "")
    same = costs_of(lambda text: text, own=own)["this text, beside news"]
    assert (same.before, same.lines) == (80, len(PAIRS))
    assert same.after == pytest.approx(100)
    assert same.interval == pytest.approx((17, 23))  # the text's own score is sure, as all lines are right
    other = costs_of(lambda text: "" if "bread" in text else text, own=own)["this text, beside news"]
    low, high = other.interval
    assert low + high == pytest.approx(2 * (other.after - 80))
    assert high - low > 6
    assert [(example.translation, example.before) for example in other.examples] == [("", "")] * 2
    # Lines and their scores, of two texts with nothing in common: the variances add.
    single = costs_of(
        lambda text: "" if "bread" in text else text, own=("news", Score("chrF2", 80.0, (80.0, 80.0), ""))
    )["this text, beside news"]
    widths = (single.interval[1] - single.interval[0], 6.0)
    assert (high - low) ** 2 == pytest.approx(sum(width**2 for width in widths))


def test_a_text_of_blank_lines_is_refused() -> None:
    with pytest.raises(DataError, match="5 lines or more with text on both sides: there are 1"):
        measure(list, [Pair(" ", "a"), Pair("a", " "), Pair("a", "a")], UNKNOWN)


def test_at_most_500_lines_are_looked_at_and_blank_ones_are_left_out() -> None:
    found = measure(lambda texts: list(texts), [*PAIRS * 8, Pair(" ", "a")], UNKNOWN)
    assert found.lines == 352
    assert "bs:1000" in found.signature


def test_the_command_writes_the_costs_into_the_card(
    command: Callable[..., Any], trained: Path, corpus: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(trained, own)
    files = [f"source={corpus / 'test.xa'}", f"reference={corpus / 'test.xb'}"]
    path = own / "best" / "scores.json"
    scores = json.loads(path.read_text(encoding="utf-8"))
    ((name, test),) = scores["test"].items()
    (tested,) = (score for score in test["metrics"] if score["name"] == "chrF2")
    tested["interval"] = [tested["score"] - 5, tested["score"] + 5]  # it was trained without resamples
    rescore(own / "best", scores, (own / "best" / "README.md").read_text(encoding="utf-8"))
    found = json.loads(command("mt-eval", "robustness", own, *files, "--json").out)
    assert {"name", "lines", "before", "after", "interval", "examples"} == {*found["robustness"][0]}
    (itself,) = (cost for cost in found["robustness"] if cost["name"] == f"this text, beside {name}")
    assert itself["before"] == tested["score"]
    assert itself["interval"][1] - itself["interval"][0] > 10
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["robustness"]["lines"] == found["lines"] == 8
    assert not any(cost["examples"] for cost in kept["robustness"]["robustness"])
    card = (own / "best" / "README.md").read_text(encoding="utf-8")
    assert "## Robustness" in card
    assert "| typing errors | 8 |" in card
    assert command("mt-eval", "robustness", own, *files).out.startswith("change ")
    assert command("mt-translate", own, corpus / "test.xa").code == 0
    assert command("mt-eval", "robustness", *files).error.startswith("robustness takes one model")
    without = command("mt-eval", "robustness", own, files[0])
    assert without.code == 2
    assert without.error.startswith("robustness takes a model, source=FILE and reference=FILE")
