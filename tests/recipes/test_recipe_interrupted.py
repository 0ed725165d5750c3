"""A recipe that is killed in each of its steps, and goes on to the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import sentences

pytestmark = pytest.mark.slow


def results(run: Path) -> dict[str, bytes]:
    """What a recipe hands over, and the texts in between."""
    files = [run / "best" / "model.safetensors", run / "best" / "tokenizer.model"]
    files += [path for path in (run / "steps").rglob("*") if path.suffix in (".txt", ".xa", ".xb")]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def test_killed_in_each_step_it_goes_on_to_the_same_bytes(compared: list[str], tmp_path: Path) -> None:
    more = [target for _, target in sentences(300, 77)]
    (tmp_path / "more.xb").write_text("".join(f"{line}\n" for line in more), encoding="utf-8")
    settings = [each for each in compared if not each.startswith(("run.dir", "trainer.updates"))]
    own = ["recipe=back_translation", f"corpus.monolingual={tmp_path / 'more.xb'}", "trainer.updates=60"]
    command = [sys.executable, "-m", "tolka", "train", *settings, *own, "recipe.filter=false", "report.page=false"]

    def start(folder: Path) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*command, f"run.dir={folder}"], stderr=subprocess.PIPE, start_new_session=True)

    with start(tmp_path / "straight") as straight:
        _, said = straight.communicate()
        assert straight.returncode == 0, said.decode()
    steps, killed = tmp_path / "again" / "steps", []
    for name in ("texts", "monolingual", "forward", "reverse", "translated", "synthetic", "final", "outcome"):
        with start(tmp_path / "again") as process:
            while process.poll() is None and not (steps / f"{name}.json").exists():
                time.sleep(0.01)
            # Within the step, where it takes any time.
            time.sleep(2.0 if name in ("forward", "reverse", "final") else 0.0)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                killed.append(name)
        # It is started again at once, while the training that it has left behind saves its state.
    with start(tmp_path / "again") as last:
        _, said = last.communicate()
        assert last.returncode == 0, said.decode()
    assert {"forward", "reverse", "final"} <= {*killed}
    straight_files, again = results(tmp_path / "straight"), results(tmp_path / "again")
    assert straight_files.keys() == again.keys()
    assert [name for name, content in straight_files.items() if again[name] != content] == []
