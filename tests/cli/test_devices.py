"""trainer.devices: several processes of this machine train one model, as one process does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
pytestmark = pytest.mark.skipif(sys.platform == "win32" or (os.cpu_count() or 1) < 2, reason="two cores, gloo")


def start(*arguments: str) -> "subprocess.Popen[str]":
    """mt-train as a process of its own."""
    script = "from tolka.cli.train import main; main()"
    return subprocess.Popen([sys.executable, "-c", script, *arguments], stderr=subprocess.PIPE, text=True)


def train(*arguments: str) -> str:
    """Train; return what it said."""
    process = start(*arguments)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    return said


def lines(run: Path, key: str) -> list[float]:
    """A curve in metrics.jsonl."""
    found = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line[key] for line in found if key in line]


def test_two_processes_train_as_one(command: Command, tiny: list[str], tmp_path: Path) -> None:
    plain = [*tiny, "model.dropout=0", "trainer.log_every=1"]
    assert command("mt-train", *plain).code == 0
    two = tmp_path / "two"
    said = train(*plain, f"run.dir={two}", "trainer.devices=2")
    assert "warning" not in said
    assert said.count("model: ") == 1  # one process talks
    for key in ("train_loss", "valid_loss"):
        assert lines(two, key) == pytest.approx(lines(tmp_path / "run", key), rel=1e-4)
    assert (two / "logs" / "rank1.log").read_text().count("training ends at update 5") == 1
    assert (two / "best" / "manifest.json").is_file()
    assert len((two / "samples" / "test.xb.txt").read_text().splitlines()) == 8


def test_more_than_the_machine_has(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", *tiny, "trainer.devices=4000")
    assert outcome.code == 2
    assert outcome.error.startswith("trainer.devices (4000) is more than the ")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_resumed_run_is_the_same_run_and_the_number_may_change(tiny: list[str], tmp_path: Path) -> None:
    def weights(run: Path) -> bytes:
        return (run / "last" / "model.safetensors").read_bytes()

    whole, halves = tmp_path / "whole", tmp_path / "halves"
    options = [*tiny, "trainer.devices=2", "trainer.log_every=1"]  # with dropout, of each process its own
    train(*options, f"run.dir={whole}", "trainer.updates=10")
    train(*options, f"run.dir={halves}")
    train(*options, f"run.dir={halves}", "trainer.updates=10")
    assert weights(halves) == weights(whole)

    mixed = tmp_path / "mixed"
    plain = [*tiny, "model.dropout=0", "trainer.log_every=1", f"run.dir={mixed}"]
    for devices, updates in ((2, 5), (1, 10), (2, 15)):
        train(*plain, f"trainer.devices={devices}", f"trainer.updates={updates}")
    alone = tmp_path / "alone"
    train(*plain, f"run.dir={alone}", "trainer.updates=15")
    assert lines(mixed, "train_loss") == pytest.approx(lines(alone, "train_loss"), rel=1e-4)


def started(process: "subprocess.Popen[str]", run: Path) -> None:
    """Wait until last/ is saved."""
    until = time.monotonic() + 60
    while not (run / "last" / "manifest.json").is_file():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
def test_a_process_that_is_killed_and_a_signal(tiny: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(*tiny, "trainer.devices=2", "trainer.updates=100000", "trainer.patience=0")
    started(process, run)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True, check=True
    )
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    until = time.monotonic() + 60
    while "resuming from update" not in (run / "train.log").read_text():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert "a process was killed: all of them begin again from last/ (1 of 3 times)" in said
    assert said.splitlines()[-1] == "error: stopped by SIGTERM; the same command goes on from last/"
    assert "training ends at update" in (run / "train.log").read_text()
