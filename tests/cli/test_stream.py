"""mt-train on a stream: it trains, stops and goes on as if it had not."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

Command = Callable[..., Any]


def streamed_from(tiny: list[str], corpus: Path, tmp_path: Path) -> list[str]:
    """The arguments of a training on the corpus as a stream."""
    folder = tmp_path / "set"
    folder.mkdir()
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        sides = [(corpus / f"{split}.{language}").read_text().splitlines() for language in ("xa", "xb")]
        rows = [json.dumps({"xa": a, "xb": b}) for a, b in zip(*sides, strict=True)]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    kept = [word for word in tiny if not word.startswith(("corpus.train", "corpus.valid", "corpus.test", "run.dir"))]
    return [
        *kept,
        *("corpus=hub", f"corpus.path={folder}", "corpus.streaming=true", "corpus.buffer=16"),
        *("batching.tokens=100", "trainer.validate_every=3", "trainer.updates=12"),
    ]


@pytest.mark.slow
def test_a_streamed_data_set_trains_and_goes_on_where_it_stopped(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    streamed = streamed_from(tiny, corpus, tmp_path)
    whole = command("mt-train", *streamed, f"run.dir={tmp_path / 'whole'}")
    assert whole.code == 0, whole.err
    assert "buffer 2 of the stream: 16 pairs, 16 kept" in whole.err
    first = command("mt-train", *streamed, f"run.dir={tmp_path / 'parts'}", "trainer.updates=6")
    assert first.code == 0, first.err
    second = command("mt-train", *streamed, f"run.dir={tmp_path / 'parts'}")
    assert second.code == 0, second.err
    assert "resuming from update 6" in second.err
    weights = [load_file(tmp_path / name / "last" / "model.safetensors") for name in ("whole", "parts")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])


@pytest.mark.slow
def test_two_processes_read_the_stream_as_one(tiny: list[str], corpus: Path, tmp_path: Path) -> None:
    streamed = [*streamed_from(tiny, corpus, tmp_path), "model.dropout=0", "trainer.log_every=1"]
    script = "from tolka.cli import mt_train; mt_train()"
    curves = []
    for name, devices in (("one", 1), ("two", 2)):
        arguments = [*streamed, f"run.dir={tmp_path / name}", f"trainer.devices={devices}"]
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("buffer 2 of the stream: 16 pairs, 16 kept") == 1
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        curves.append([line["train_loss"] for line in lines if "train_loss" in line])
    assert curves[1] == pytest.approx(curves[0], rel=1e-4)
    assert len(curves[0]) == 12


@pytest.mark.slow
def test_a_stream_goes_on_where_the_batches_are_fitted_to_memory(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    """In a new process the buffers before the one to go on with are not there."""
    fitted = [*streamed_from(tiny, corpus, tmp_path), "batching.tokens=auto"]
    first = command("mt-train", *fitted, f"run.dir={tmp_path / 'run'}", "trainer.updates=9")
    assert first.code == 0, first.err
    second = command("mt-train", *fitted, f"run.dir={tmp_path / 'run'}", "trainer.accumulate=2", "run.override=true")
    assert second.code == 0, second.err
    assert "resuming from update 9" in second.err
