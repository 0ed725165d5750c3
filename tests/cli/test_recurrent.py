"""The recurrent models through the three commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.config.choices import choices_of

Command = Callable[..., Any]
RUNGS = [name for name in choices_of("model") if not name.startswith(("auto", "transformer"))]


def small(tiny: list[str], model: str) -> list[str]:
    """The settings of `tiny` for another model."""
    kept = [setting for setting in tiny if not setting.startswith("model")]
    return [*kept, f"model={model}", "model.d_model=16"]


@pytest.mark.slow
@pytest.mark.parametrize("model", RUNGS)
def test_every_rung_trains_and_translates(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path, model: str
) -> None:
    arguments = [*small(tiny, model), "trainer.updates=2"]
    assert command("mt-train", *arguments).code == 0
    outcome = command("mt-translate", tmp_path / "run", corpus / "test.xa")
    assert (outcome.code, outcome.out.count("\n")) == (0, 8)
    if model == RUNGS[-1]:
        outcome = command("mt-train", *arguments, "trainer.updates=3")
        assert (outcome.code, "resuming from update 2" in outcome.err) == (0, True)
        scored = command("mt-eval", tmp_path / "run", f"source={corpus}/test.xa", f"reference={corpus}/test.xb")
        assert (scored.code, "BLEU" in scored.out) == (0, True)


@pytest.mark.slow
def test_gradient_flow_is_recorded_and_drawn(command: Command, tiny: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = [*small(tiny, "lstm"), "trainer.gradient_flow=true", "model.layers=2", "model.bidirectional=true"]
    assert command("mt-train", *arguments).code == 0
    assert command("mt-train", *arguments, "trainer.updates=10", "report.plots=true", "report.page=true").code == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    flows = {line["update"]: line["gradient_flow"] for line in lines if "gradient_flow" in line}
    assert list(flows) == [0, 5, 10]
    names = [(flow["layer"], flow["state"]) for flow in flows[5]]
    assert names == [
        (f"encoder.{layer}.{way}", state) for layer in (0, 1) for way in ("forward", "backward") for state in ("h", "C")
    ]
    assert all(norm > 0 for flow in flows[10] for norm in flow["norms"])
    assert flows[0] != flows[5]
    for name in ("first", "last"):
        picture = tmp_path / "run" / "plots" / f"gradient_flow_{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_gradient_flow_needs_a_recurrence(command: Command, tiny: list[str]) -> None:
    outcome = command("mt-train", *tiny, "trainer.gradient_flow=true")
    assert outcome.code == 2
    assert "looks along the states of a recurrent encoder, and this model has none" in outcome.error
