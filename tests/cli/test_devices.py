"""trainer.devices: several processes of this machine train one model, as one process does."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
STARTED: "list[subprocess.Popen[str]]" = []
PLUGINS = Path(__file__).parents[1] / "support" / "plugins"
pytestmark = pytest.mark.skipif(sys.platform == "win32" or (os.cpu_count() or 1) < 2, reason="two cores, gloo")


def start(*arguments: str, script: str = "", **place: object) -> "subprocess.Popen[str]":
    """mt-train as a process of its own. script: code to run before. place: environment variables, as torchrun's."""
    script += "from tolka.cli import mt_train; mt_train()"
    environment = {**os.environ, **{name: str(value) for name, value in place.items()}}
    STARTED.append(
        subprocess.Popen([sys.executable, "-c", script, *arguments], stderr=subprocess.PIPE, text=True, env=environment)
    )
    return STARTED[-1]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """After a test that fails, too."""
    yield
    while STARTED:
        STARTED.pop().kill()


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


@pytest.mark.slow
def test_two_processes_train_as_one(command: Command, tiny: list[str], tmp_path: Path) -> None:
    plain = [*tiny, "model.dropout=0", "trainer.log_every=1"]
    assert command("mt-train", *plain).code == 0
    two = tmp_path / "two"
    said = train(*plain, f"run.dir={two}", "trainer.devices=2")
    assert "warning" not in said.lower()
    assert said.count("model: ") == 1  # one process talks
    for key in ("train_loss", "valid_loss"):
        assert lines(two, key) == pytest.approx(lines(tmp_path / "run", key), rel=1e-4)
    assert (two / "logs" / "rank1.log").read_text().count("training ends at update 5") == 1
    assert (two / "best" / "manifest.json").is_file()
    assert len((two / "samples" / "test.xb.txt").read_text().splitlines()) == 8


@pytest.mark.slow
def test_two_processes_see_the_same_plateau(tiny: list[str], tmp_path: Path) -> None:
    """With a rate that changes no weight, each validation is equal to the first."""
    still = ["optimizer.lr=1e-30", "trainer.validate_every=1", "trainer.log_every=1", "trainer.patience=2"]
    train(
        *tiny,
        *still,
        "scheduler=wsd",
        "scheduler.horizon=0",
        "scheduler.warmup=0",
        "trainer.devices=2",
        "trainer.average=2",
    )
    assert lines(tmp_path / "run", "lr") == pytest.approx([1e-30, 1e-30, 1e-30, 1e-32], rel=1e-9, abs=0.0)
    for log in ("train.log", "logs/rank1.log"):
        ending = "training ends at update 4: the rate has decayed since the plateau at update 3"
        assert ending in (tmp_path / "run" / log).read_text("utf-8")
    assert "the mean of 2 checkpoints, of updates 3, 4:" in (tmp_path / "run" / "train.log").read_text("utf-8")


def test_more_than_the_machine_has(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", *tiny, "trainer.devices=1000")
    assert outcome.code == 2
    assert outcome.error.startswith("trainer.devices (1000) is more than the ")
    assert not (tmp_path / "run").exists()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return int(taken.getsockname()[1])


@pytest.mark.slow
def test_nobody_else_comes(command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    places = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tolka.distributed.ranks.TIMEOUT", timedelta(seconds=0.6))
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        outcome = command("mt-train", *tiny)
        assert outcome.code == 1
        assert outcome.error.startswith(
            f"process {rank} has not met all 2 processes of this training at localhost:{port} (MASTER_ADDR, "
            "MASTER_PORT) within 0.01 minutes: start all of them, at a free port, "
        )


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("WORLD_SIZE", "two", "the environment variable WORLD_SIZE (two) must be a number of at least 1"),
        ("WORLD_SIZE", "2", "WORLD_SIZE is 2, but RANK and MASTER_ADDR and MASTER_PORT are not set"),
    ],
)
def test_variables_that_torchrun_would_not_set(
    name: str, value: str, complaint: str, command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    outcome = command("mt-train", *tiny)
    assert outcome.code == 2
    assert outcome.error.startswith(complaint)


def test_what_one_process_does_alone(command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    outcome = command("mt-train", "-m", *tiny, "model.layers=1,2")
    assert outcome.code == 2
    assert outcome.error.startswith("-m trains one model after the other: start it without torchrun and srun")


def two(first: list[str], second: list[str], script: str = "") -> tuple[list[int], list[str]]:
    """Train in two processes started by hand; return exit codes and errors. script: code that the second runs first."""
    port = free_port()
    processes = [
        start(*settings, script=code, RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port)
        for rank, (settings, code) in enumerate(((first, ""), (second, script)))
    ]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert "Traceback" not in "".join(said)
    errors = [line for text in said for line in text.splitlines() if line.startswith("error: ")]
    return [process.returncode for process in processes], errors


@pytest.mark.slow
def test_processes_that_do_not_belong_together(
    tiny: list[str], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert two(tiny, [*tiny, "trainer.updates=6"]) == (
        [2, 2],
        [
            "error: the processes of this training have different settings: trainer.updates (5, in process 1: 6); "
            "start all with the same command, on machines with the same versions"
        ],
    )
    other = "import tolka.version; tolka.version.__version__ = '9.9'; "
    codes, errors = two(tiny, tiny, other)
    assert codes == [2, 2]
    assert len(errors) == 1
    assert "tolka ('" in errors[0]
    assert "in process 1: '9.9')" in errors[0]

    copy = shutil.copytree(corpus, tmp_path / "other")
    (copy / "train.xa").write_text((corpus / "train.xa").read_text().replace("copper", "velvet"))
    unlike = f"import os; os.chdir({str(copy)!r}); "
    relative = [*tiny, "corpus.train=train"]
    monkeypatch.chdir(corpus)
    codes, errors = two(relative, relative, unlike)
    assert codes == [2, 2]
    assert errors == [
        "error: processes 0 and 1 have different training text, or models of 12,864 and 12,864 parameters: every "
        "machine must see the same files, and have the same versions of tolka and of plugins"
    ]


@pytest.mark.slow
def test_a_tracker_of_ones_own(tiny: list[str], tmp_path: Path) -> None:
    script = f"import sys; sys.path.append({str(PLUGINS)!r}); "
    process = start(*tiny, "trainer.devices=2", "plugins=[my_callback]", "tracking=diary", script=script)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0, said
    assert (tmp_path / "run" / "diary.txt").read_text().splitlines()[-1] == "end well, ['test']"


@pytest.mark.slow
def test_more_processes_than_sentences(tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    for side in ("xa", "xb"):
        lines_of = (corpus / f"train.{side}").read_text().splitlines(keepends=True)
        (corpus / f"train.{side}").write_text("".join(lines_of[:2]))
    one = [*tiny, "tokenizer.type=char", "model.dropout=0", "trainer.log_every=1", "batching.sentences=1"]
    codes, errors = two(one, one)
    assert (codes, errors) == ([0, 0], [])
    train(*one, f"run.dir={tmp_path / 'alone'}")
    assert lines(tmp_path / "run", "train_loss") == pytest.approx(lines(tmp_path / "alone", "train_loss"), rel=1e-4)


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
    for devices, updates in ((2, 5), (1, 10)):
        train(*plain, f"trainer.devices={devices}", f"trainer.updates={updates}")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    subprocess.run([*torchrun, "-m", "tolka.cli.train", *plain, "trainer.updates=15"], check=True, timeout=120)
    alone = tmp_path / "alone"
    train(*plain, f"run.dir={alone}", "trainer.updates=15")
    assert lines(mixed, "train_loss") == pytest.approx(lines(alone, "train_loss"), rel=1e-4)


def started(process: "subprocess.Popen[str]", run: Path) -> None:
    """Wait until last/ is saved."""
    until = time.monotonic() + 300
    while not (run / "last" / "manifest.json").is_file():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)


def ranks_of(process: "subprocess.Popen[str]") -> list[int]:
    """The ids of the processes that train together."""
    shown = ["pgrep", "-P", str(process.pid), "-f", "spawn_main"]
    return list(map(int, subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split()))


def resumed(process: "subprocess.Popen[str]", run: Path) -> None:
    """Wait until the processes have begun again."""
    until = time.monotonic() + 300
    while "resuming from update" not in (run / "train.log").read_text():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)


ENDLESS = ["trainer.devices=2", "trainer.updates=100000", "trainer.patience=0"]


@pytest.mark.slow
def test_a_process_that_is_killed_and_a_signal(tiny: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(*tiny, *ENDLESS)
    started(process, run)
    os.kill(ranks_of(process)[-1], signal.SIGKILL)
    resumed(process, run)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert f"a process was killed: all of them begin again from {run / 'last'} (1 of 3 times)" in said
    assert said.splitlines()[-1] == f"stopped by SIGTERM; the same command continues from {run / 'last'}"
    assert ".cc:" not in said  # the lines of gloo are in logs/rank<n>.log
    assert "training ends at update" in (run / "train.log").read_text()


@pytest.mark.slow
def test_a_process_that_hangs(tiny: list[str], tmp_path: Path) -> None:
    """Python imports sitecustomize.py in each process that the command starts, too."""
    short = (
        "from datetime import timedelta\nfrom tolka.distributed import ranks\nranks.TIMEOUT = timedelta(seconds=12)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(short)
    run = tmp_path / "run"
    process = start(*tiny, *ENDLESS, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    started(process, run)
    os.kill(ranks_of(process)[-1], signal.SIGSTOP)
    resumed(process, run)
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 143
    assert "another process of this training has ended, or does not answer (" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end them")
@pytest.mark.parametrize("restart", [False, True])
def test_ranks_end_with_their_parent(restart: bool, tiny: list[str], tmp_path: Path) -> None:
    """Whatever ended it: one that was left alive would hold the lock of the run."""
    run = tmp_path / "run"
    process = start(*tiny, *ENDLESS)
    started(process, run)
    if restart:
        os.kill(ranks_of(process)[-1], signal.SIGKILL)
        resumed(process, run)
    ranks = ranks_of(process)
    process.kill()
    process.communicate(timeout=60)  # its stderr is theirs, too
    until = time.monotonic() + 60
    while any(state_of(rank) != "Z" for rank in ranks):
        assert time.monotonic() < until
        time.sleep(0.1)
    train(*tiny, "trainer.devices=2")  # the lock is free


def state_of(process: int) -> str:
    """Linux' letter for what a process does; Z if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"
