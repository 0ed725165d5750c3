"""Each tracker gets every curve, under the same steps after a resume, as its own library reads it back.

A tracker whose package is not installed is skipped; scripts/test_trackers.sh tests each in an environment of its own.
"""

import json
import os
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tolka.metrics.validation import Sample, Validation
from tolka.tracking.base import TrackedRun, Tracker
from tolka.tracking.tensorboard import TensorBoard
from tolka.training.callbacks import Beginning, Ending
from tolka.training.trainer import Trainer

Command = Callable[..., Any]
Curves = Mapping[str, list[tuple[int, float]]]
TRACKERS = ("tensorboard", "wandb", "mlflow", "trackio")


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not find_spec(name), reason=f"{name} is not installed: scripts/test_trackers.sh tests it")


EACH = [pytest.param(name, marks=needs(name)) for name in TRACKERS]


def of_tensorboard(run: Path) -> Curves:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tracking" / "tensorboard"))
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def of_wandb(run: Path) -> Curves:
    """The files of an offline run: blocks of 32 KB that hold protocol buffers, as LevelDB writes its log."""
    curves = defaultdict(list)
    for path in sorted(run.glob("tracking/wandb/offline-run-*/*.wandb")):
        for record in wandb_records(path.read_bytes()):
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for key, value in row.items():
                if key != "update" and not key.startswith("_") and isinstance(value, int | float):
                    curves[key].append((row["update"], value))
    return curves


def wandb_records(content: bytes) -> Iterator[Any]:
    from wandb.proto import wandb_internal_pb2

    place, parts, block = 7, b"", 32768
    while place + 7 <= len(content):
        if block - place % block < 7:
            place += block - place % block
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + 7])
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def of_mlflow(run: Path) -> Curves:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{run.parent / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(run.parent.name)
    [found] = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["model.d_model"] == "16"
    names = found.data.metrics
    points = {name: client.get_metric_history(found.info.run_id, name) for name in names}
    artifacts = {file.path for file in client.list_artifacts(found.info.run_id, "model")}
    assert "model/model.safetensors" in artifacts
    return {name: [(point.step, point.value) for point in points[name]] for name in names}


def of_trackio(run: Path) -> Curves:
    from trackio.sqlite_storage import SQLiteStorage

    [name] = SQLiteStorage.get_runs(run.parent.name)
    curves = defaultdict(list)
    for row in SQLiteStorage.get_logs(run.parent.name, name):
        for key, value in row.items():
            if "/" in key and isinstance(value, int | float):
                curves[key].append((row["step"], value))
    return curves


READERS = {"tensorboard": of_tensorboard, "wandb": of_wandb, "mlflow": of_mlflow, "trackio": of_trackio}


def expected(run: Path) -> dict[str, list[tuple[int, float]]]:
    """The curves in metrics.jsonl."""
    curves = defaultdict(list)
    for text in (run / "metrics.jsonl").read_text().splitlines():
        line = json.loads(text)
        kind = "train" if "train_loss" in line else "validation" if "valid_loss" in line else ""
        for key, value in line.items() if kind else ():
            if key != "update" and isinstance(value, int | float):
                curves[f"{kind}/{key.replace('train_', '').replace('valid_', '')}"].append((line["update"], value))
    return curves


@pytest.fixture
def tracked(tiny: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for key in [key for key in os.environ if key.startswith(("WANDB_", "MLFLOW_", "TRACKIO_"))]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.chdir(tmp_path)
    return [
        *tiny,
        "trainer.updates=10",
        "trainer.log_every=2",
        "trainer.samples=2",
        f"tracking.project={tmp_path.name}",
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EACH)
def test_every_curve_goes_on_after_a_resume(
    name: str, command: Command, tracked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training dies after update 7; the resumed run begins at 5 and repeats the line of update 6, in the same run."""
    run = tmp_path / "run"
    real = Trainer._train_step

    def dying(self: Trainer, window: Any) -> Any:
        if self.state.update == 7:
            raise MemoryError("dies")
        return real(self, window)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_train_step", dying)
        assert command("mt-train", *tracked, f"tracking={name}").code == 1
    outcome = command("mt-train", *tracked, f"tracking={name}")
    assert outcome.code == 0, outcome.err
    assert "warning: tracking" not in outcome.err
    assert outcome.out == ""
    found, repeated = READERS[name](run), 6
    if name != "tensorboard":  # which hides the points that are repeated; the others show both, which are alike
        times = [update for update, _ in found["train/loss"]].count(repeated)
        assert times == 2
    for curve, points in expected(run).items():
        latest = dict(found[curve])
        assert [*latest] == [update for update, _ in points], curve
        assert [*latest.values()] == pytest.approx([value for _, value in points], rel=1e-6), curve
    assert {update for update, _ in found["system/memory_gb"]} == {2, 4, 6, 8, 10}
    assert len(found["test/test/bleu"]) == 1
    assert (
        sorted(path.name for path in tmp_path.iterdir() if path.name in ("outputs", "multirun", "wandb", "mlruns"))
        == []
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EACH)
def test_a_finished_run_is_sent_as_a_whole(name: str, command: Command, tracked: list[str], tmp_path: Path) -> None:
    assert command("mt-train", *tracked).code == 0
    assert command("mt-train", *tracked, f"tracking={name}").code == 0
    assert command("mt-train", *tracked, f"tracking={name}").code == 0  # sends the results only
    found = READERS[name](tmp_path / "run")
    for curve, points in expected(tmp_path / "run").items():
        assert [update for update, _ in found[curve]] == [update for update, _ in points]
    assert {update for update, _ in found["test/test/bleu"]} == {10}


@needs("mlflow")
@pytest.mark.filterwarnings("ignore")
def test_a_server_that_is_not_there(
    command: Command, tracked: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    outcome = command("mt-train", *tracked, "tracking=mlflow")
    assert outcome.code == 0
    assert outcome.err.count("warning: tracking=mlflow: nothing more is sent (MlflowException: ") == 1
    assert "/run/tracking the same command sends them all" in outcome.err
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert command("mt-train", *tracked, "tracking=mlflow").code == 0
    found = of_mlflow(tmp_path / "run")
    assert [update for update, _ in found["train/loss"]] == [2, 4, 6, 8, 10]


@pytest.mark.slow
@needs("tensorboard")
@pytest.mark.filterwarnings("ignore")
def test_points_of_updates_that_training_took_back_are_replaced(
    command: Command, tracked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Trainer._validate_and_save
    from tolka.training.non_finite import LostError

    lost = iter([True])

    def losing(self: Trainer) -> None:
        if self.state.update == 10 and next(lost, False):
            raise LostError("the loss is NaN")
        real(self)

    monkeypatch.setattr(Trainer, "_validate_and_save", losing)
    assert command("mt-train", *tracked, "tracking=tensorboard").code == 0
    run = tmp_path / "run"
    found, points = of_tensorboard(run), expected(run)
    assert "going back from update 10 to 5" in (run / "train.log").read_text()
    for curve in ("train/loss", "train/lr", "validation/loss"):
        assert [update for update, _ in found[curve]] == [update for update, _ in points[curve]]
        assert [value for _, value in found[curve]] == pytest.approx([value for _, value in points[curve]], rel=1e-6)


@needs("tensorboard")
@pytest.mark.filterwarnings("ignore")
def test_what_a_resumed_run_logs_again_takes_the_place_of_the_old(tmp_path: Path) -> None:
    tracker = TensorBoard()
    config = {"tracking": {"project": "p", "model": False}}
    tracker.on_start(Beginning(tmp_path, config, lambda message: None))

    def lines(first: int, last: int) -> None:
        for update in range(first, last + 1, 10):
            tracker.on_update({"update": update, "train_loss": float(update)}, 1.0)
            if update % 20 == 0:
                tracker.on_validation({"update": update, "valid_loss": 1.0, "bleu": 2.0}, Validation({}, ""))

    lines(10, 50)
    tracker.on_end(Ending(tmp_path))
    found = of_tensorboard(tmp_path)
    assert [update for update, _ in found["train/loss"]] == [10, 20, 30, 40, 50]
    assert [update for update, _ in found["validation/bleu"]] == [20, 40]

    other = TensorBoard()  # the run is taken over, with other settings, from update 30
    other.on_start(Beginning(tmp_path, config, lambda message: None, update=30))
    other.on_update({"update": 40, "train_loss": 4.0}, 1.0)
    other.on_end(Ending(tmp_path))
    assert of_tensorboard(tmp_path)["train/loss"] == [(10, 10.0), (20, 20.0), (30, 30.0), (40, 4.0)]


class Diary(Tracker):
    """Remembers what it is given, until it fails."""

    name, package = "diary", "json"
    lines: ClassVar[list[int]] = []
    ids: ClassVar[list[str]] = []
    full_after: ClassVar[int] = 2

    def open(self, run: TrackedRun) -> None:
        self.lines.append(0)
        self.ids.append(run.id)

    def log(self, values: Mapping[str, float], update: int) -> None:
        if len(self.lines) > self.full_after:
            raise OSError("no space\nleft")
        self.lines.append(update)

    def note(self, name: str, text: str, update: int) -> None: ...
    def samples(self, samples: Sequence[Sample], update: int) -> None: ...
    def close(self, error: str) -> None: ...


def test_after_a_failure_nothing_is_sent_and_a_resumed_run_goes_on(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"update": update, "train_loss": 1.0} for update in (10, 20, 30, 40)]
    config, log = {"tracking": {"project": "p", "model": False}}, list[str]()
    first, again, anew = Diary(), Diary(), Diary()
    first.on_start(Beginning(tmp_path, config, log.append))
    for line in lines:
        first.on_update(line, 1.0)
    first.on_end(Ending(tmp_path))
    assert Diary.lines == [0, 10, 20]
    (said,) = log
    assert said.startswith("warning: tracking=diary: nothing more is sent (OSError: no space left); training continues")
    Diary.lines, Diary.full_after = [], 9
    again.on_start(Beginning(tmp_path, config, log.append, update=40, history=lines))
    again.on_update({"update": 50, "train_loss": 1.0}, 1.0)
    again.on_end(Ending(tmp_path))
    assert (Diary.lines, Diary.ids[0], log) == ([0, 50], Diary.ids[1], [said])
    Diary.lines = []
    shutil.rmtree(tmp_path / "tracking")  # as the message says
    anew.on_start(Beginning(tmp_path, config, log.append, update=40, history=lines))
    assert (Diary.lines, Diary.ids[2] == Diary.ids[0]) == ([0, 10, 20, 30, 40], False)
