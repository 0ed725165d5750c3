"""Runs that an earlier version left midway go on, translate and are scored as they were."""

import json
from pathlib import Path
from typing import Any

import pytest
from interrupted import runs

KEPT = Path(__file__).parent / "kept"
# Another processor rounds otherwise, and 20 updates carry that on; on the machine that made them all are equal.
ROUNDING = 1e-3


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a copy of each run."""
    return runs.workplace(tmp_path_factory.mktemp("kept") / "work")


# All are of the slow tests but two, which have most of what a state may hold.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("lora", "rotary_swiglu_muon") else pytest.mark.slow)
        for name in runs.SETTINGS
    ],
)
def test_a_run_translates_is_scored_and_goes_on_as_before(
    command: Any, work: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(work)
    # The kept runs are of a processor on which row counts are rounded up. Where they are not, a batch with little
    # padding has rows for it, and the dropout masks of the rows after these are others.
    monkeypatch.setattr("tolka.kernels.packing.row_counts_are_compiled", lambda: True)
    expected = json.loads((KEPT / "interrupted" / f"{name}.json").read_text(encoding="utf-8"))
    translated = command("mt-translate", name, "text/test.xa")
    assert translated.out == (KEPT / "interrupted" / f"{name}.xb").read_text(encoding="utf-8")
    scored = command("mt-eval", name, "source=text/test.xa", "reference=text/test.xb", "--json")
    assert _rounded(json.loads(scored.out)) == _rounded(expected["scores"])
    resumed = command("mt-train", *runs.arguments(name, expected["stopped"] + runs.NEXT))
    assert resumed.code == 0, resumed.err
    losses = [loss for update, loss in runs.losses(work / name) if update > expected["stopped"]]
    assert len(losses) == runs.NEXT
    assert losses == pytest.approx(expected["losses"], rel=ROUNDING)


def _rounded(found: Any) -> Any:
    """JSON with its numbers to three digits, as another processor rounds otherwise, and without sacreBLEU's version."""
    if isinstance(found, dict):
        return {key: _rounded(value) for key, value in found.items()}
    if isinstance(found, str):
        return found.partition("|version:")[0]
    if isinstance(found, list):
        return [_rounded(value) for value in found]
    return float(f"{found:.3g}") if isinstance(found, float) else found
