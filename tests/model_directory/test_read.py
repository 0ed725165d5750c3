"""Directories of earlier versions: models translate as they did; a run is refused with advice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tolka.config.schemas import rebuild
from tolka.model_directory.read import load_model
from tolka.model_directory.resume_state import load_state
from tolka.training.saved_settings import saved_settings

Command = Callable[..., Any]
KEPT = Path(__file__).parents[1] / "kept"
RUNS = [KEPT / "before_cleaning"]
# What was typed then, in the words of now.
SETTINGS = [
    "corpus=files",
    "corpus.source=xa",
    "corpus.target=xb",
    "model=transformer_tiny",
    "tokenizer.shared=false",
    "tokenizer.vocab_size=310",
    "cleaning=none",
    "cleaning.duplicates=exact",
    "cleaning.max_characters=200",
    "model.d_model=16",
    "model.heads=2",
    "model.layers=1",
    "model.share_embeddings=target_output",
    "trainer.device=cpu",
    "trainer.samples=0",
    "trainer.log_every=500",
    "trainer.updates=1500",
    "trainer.validate_every=500",
    "scheduler.warmup=50",
    "optimizer.lr=0.02",
    "batching.tokens=512",
    "batching.max_length=64",
    "run.name=kept",
]


def text(run: Path) -> list[str]:
    return [f"corpus.{split}={run / 'text' / split}" for split in ("train", "valid", "test")]


@pytest.fixture(params=RUNS, ids=lambda path: path.name)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a run's folder."""
    return Path(shutil.copytree(request.param, tmp_path / "run"))


def test_a_model_translates_as_it_did(command: Command, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.xb"
    assert command("mt-translate", run, run / "text" / "test.xa", "-o", out).code == 0
    assert out.read_bytes() == (run / "translated.xb").read_bytes()


def test_its_scores_are_those_it_was_saved_with(command: Command, run: Path) -> None:
    outcome = command(
        "mt-eval", run, f"files.source={run / 'text' / 'test.xa'}", f"files.reference={run / 'text' / 'test.xb'}"
    )
    assert outcome.code == 0, outcome.err
    metrics = load_model(run).scores["test"]["test"]["metrics"]
    assert len(metrics) == 4
    for metric in metrics:
        assert f" {metric['score']:.2f} " in outcome.out, metric["name"]


def test_its_settings_and_state_are_read(run: Path) -> None:
    config = rebuild(saved_settings(run / "config.yaml"))
    assert (config.cleaning.duplicates, config.cleaning.max_characters) == ("exact", 200)
    assert config.as_dict()["model"]["share_embeddings"] == "target_output"
    assert load_state(run / "last").facts["train"]["update"] == 1500


@pytest.mark.slow
def test_training_goes_on_from_its_weights(command: Command, run: Path, tmp_path: Path) -> None:
    new = ["run.dir=" + str(tmp_path / "new"), f"run.prepared={tmp_path / 'prepared'}", f"run.init_from={run}"]
    outcome = command(
        "mt-train", *new, "corpus=files", "corpus.source=xa", "corpus.target=xb", *text(run),
        "trainer.updates=2", "scheduler.warmup=1", "trainer.validate_every=2", "metrics.bootstrap=0",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert f"weights, sizes and tokenizer: from {run}" in outcome.err


def test_a_run_whose_text_was_prepared_otherwise_is_refused_with_what_to_do(
    command: Command, run: Path, tmp_path: Path
) -> None:
    before = (run / "last" / "model.safetensors").read_bytes()
    folders = [f"run.dir={run}", f"run.prepared={tmp_path / 'prepared'}"]
    outcome = command("mt-train", *SETTINGS, *text(run), *folders, "run.override=true")
    assert outcome.code == 2
    assert "another version of tolka prepared it" in outcome.error
    assert f"run.init_from={run}" in outcome.error
    assert (run / "last" / "model.safetensors").read_bytes() == before
