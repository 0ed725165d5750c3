"""The recurrent models through the three commands."""

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
