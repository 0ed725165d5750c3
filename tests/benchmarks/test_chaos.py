"""benchmarks/chaos.py: interrupted trainings end as if nothing had happened. A few lives here; the script has many."""

import random
import sys
from pathlib import Path

import pytest

from chaos import MODELS, NAN_AT, Harness, differences, torment, write_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")


@pytest.mark.slow
def test_a_few_lives_of_a_training(tmp_path: Path) -> None:
    """Killed in the middle of a save, stopped in a validation, a full disk; one batch's loss is NaN or inf."""
    write_text(tmp_path)
    harness = Harness(tmp_path, "transformer", random.Random(1))
    expected, run = harness.undisturbed(NAN_AT), tmp_path / "run"
    saved = -1
    for point, count, what, codes in (
        ("write", 8, "SIGKILL", (-9,)),
        ("validate", 2, "SIGTERM", (143,)),
        ("write", 2, "ENOSPC", (1,)),
        ("", 0, "", (0,)),
    ):
        child = harness.start(run, point, count, what, NAN_AT)
        _, said = child.communicate()
        assert child.returncode in codes, said.decode()
        assert "Traceback" not in said.decode()
        saved = harness.look(run, saved)
        assert saved >= 0
    assert harness.faults == []
    assert differences(expected, run) == []
    (run / "last" / "model.safetensors").write_bytes(b"")
    assert "last/model.safetensors" in differences(expected, run)  # it can fail


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_many_lives(tmp_path: Path, model: str) -> None:
    harness = torment(tmp_path, model, 25, seed=2, say=print)
    assert harness.faults == []
    assert harness.equal >= 2
