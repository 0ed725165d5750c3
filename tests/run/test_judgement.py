"""The verdict that a training leaves in its folder."""

import json
from pathlib import Path

import pytest

from tolka.evaluation.figures import Evidence
from tolka.evaluation.verdict import verdict


def test_the_verdict_follows_from_its_figures_and_stands_on_the_card(trained: Path) -> None:
    scores = json.loads((trained / "best" / "scores.json").read_text("utf-8"))
    stored = scores["verdict"]
    again = verdict(Evidence(**stored["figures"])).as_dict()
    assert again == stored | {"figures": again["figures"]}
    assert stored["sentences"][0] in (trained / "best" / "README.md").read_text("utf-8")
    # As the validation measured it, in batches and from one pass over them.
    assert stored["figures"]["valid_loss"] == pytest.approx(scores["validation"]["valid_loss"], rel=1e-3)
    assert stored["figures"]["bleu"] == scores["test"]["test"]["metrics"][0]["score"]
