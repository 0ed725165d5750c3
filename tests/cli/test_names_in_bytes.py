"""Names of files that are not UTF-8: what is only read is read, all else is refused in one line."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
Command = Callable[..., Any]
BYTE = os.fsdecode(b"\xe9")


@pytest.fixture
def odd(corpus: Path) -> Path:
    """The corpus' folder, every file of it with a byte in its name that is not UTF-8."""
    for path in list(corpus.iterdir()):
        path.rename(path.with_name(f"{path.stem}{BYTE}{path.suffix}"))
    return corpus


@pytest.mark.parametrize("more", [[], pytest.param(["report.page=true"], marks=pytest.mark.slow)])
def test_training_on_such_files_and_going_on(
    command: Command, tiny: list[str], odd: Path, tmp_path: Path, more: list[str]
) -> None:
    named = [f"corpus.train={odd}/tr*", f"corpus.valid={odd}/valid{BYTE}", f"corpus.test={odd}/test{BYTE}"]
    arguments = [*tiny, *named, *more]
    assert command("mt-train", *arguments).code == 0
    scores = (tmp_path / "run" / "best" / "scores.json").read_text(encoding="utf-8")
    assert r"test\\udce9" in scores
    again = command("mt-train", *arguments)
    assert (again.code, "Traceback" in again.err) == (0, False)
    assert not more or command("mt-train", "--rerun", tmp_path / "run").code == 0


def test_translating_and_scoring_such_files(command: Command, trained: Path, odd: Path, tmp_path: Path) -> None:
    source, reference, out = odd / f"test{BYTE}.xa", odd / f"test{BYTE}.xb", tmp_path / f"out{BYTE}"
    assert command("mt-translate", trained, source, "-o", out).code == 0
    assert out.read_text().count("\n") == 8
    scored = command("mt-eval", f"hypothesis={out}", f"reference={reference}", "metrics.bootstrap=0")
    assert (scored.code, "BLEU" in scored.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["mt-translate", f"model{BYTE}"], 1, r"model\udce9 is not UTF-8, and safetensors opens no such file"),
        (["mt-train", "average", f"model{BYTE}", "-o", "out"], 1, r"model\udce9 is not UTF-8"),
        (["mt-train", "average", "model", "-o", f"out{BYTE}"], 1, r"out\udce9 is not UTF-8"),
        (["mt-train", "--print-config", f"run.dir=run{BYTE}"], 2, r"'run.dir=run\udce9' is not UTF-8"),
        (["mt-train", "--rerun", f"model{BYTE}"], 2, r"run.name (model\udce9-again) is not UTF-8"),
        (
            ["mt-train", "--print-config", f"tracking.project=caf{BYTE}"],
            2,
            r"'tracking.project=caf\udce9' is not UTF-8",
        ),
        (["mt-translate", "model", f"search{BYTE}=beam"], 1, r"search\udce9=beam: there is no such file"),
        (["mt-eval", f"hypothesis=no{BYTE}", "reference=file"], 1, "file: there is no such file"),
    ],
)
def test_what_is_refused(
    command: Command,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, f"model{BYTE}")
    outcome = command(*arguments, stdin=b"ferry\n")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.error.startswith(complaint)
