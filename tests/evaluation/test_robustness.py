"""What changes of a text cost: made-up translators whose cost is known."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.errors import DataError
from tolka.evaluation.robustness import Cost, measure
from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair

WORDS = ["river", "stone", "bread", "window", "Anna", "garden", "silver", "morning", "travel", "7", "12 boats"]
PAIRS = [Pair(f"{a} {b} {c}.", f"{a} {b} {c}.") for a in WORDS for b in WORDS[:6] for c in WORDS[:2]]


def costs_of(translate: Callable[[str], str]) -> dict[str, Cost]:
    found = measure(lambda texts: [translate(text) for text in texts], PAIRS, Direction("", "en"))
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
        assert found[name].interval[1] < 0, name
    # chrF leaves blanks out, but neither characters of no width nor soft hyphens.
    assert found["doubled and invisible blanks"].after < 100
    assert found["unknown names"].lines == sum("Anna" in pair.source for pair in PAIRS)
    example = found["typing errors"].examples[0]
    assert example.translation == example.source != example.reference == example.before


def test_a_translator_without_capitals_loses_all_in_them() -> None:
    found = costs_of(lambda text: "" if text.isupper() else text)
    assert found["capitals"].after == 0
    assert found["capitals"].interval == pytest.approx((-100, -100))


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
    found = json.loads(command("mt-eval", "robustness", own, *files, "--json").out)
    assert {"name", "lines", "before", "after", "interval", "examples"} == {*found["robustness"][0]}
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
