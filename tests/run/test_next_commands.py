"""What is advised after a training runs as it is typed, whatever made the run."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from conftest import Command, arguments_of, write_corpus
from tolka.config.command_line import train_config
from tolka.run.next_commands import continuation, monolingual_command, more_text_command, with_plugins
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState

LANGUAGES = "source: xa, target: xb"


@pytest.fixture
def settings(tmp_path: Path, trained: Path) -> list[str]:
    """The settings of `trained`, with more text in more.xa and more.xb."""
    write_corpus(tmp_path / "more")
    return arguments_of(trained.parent / "corpus", trained)


def typed(text: str, tmp_path: Path, run: Path) -> list[str]:
    """The arguments of an advised command, with names in place of its words for them."""
    names = {"MORE": str(tmp_path / "more" / "train"), "TEXT": str(tmp_path / "more" / "train.xb"), "{run}": str(run)}
    for word, name in names.items():
        text = text.replace(word, name)
    program, *words = shlex.split(text)
    assert program == "mt-train"
    return words


def kinds(settings: list[str], trained: Path) -> dict[str, tuple[list[dict[str, Any]], dict[str, Any] | None]]:
    """Runs by what was typed for them: the recorded calls, and the corpus's settings."""
    folder = trained.parent / "corpus"
    own = [each for each in settings if not each.startswith("corpus")]
    sides = [f"corpus.{key}={folder / key}" for key in ("valid", "test")]

    def call(words: list[str]) -> list[dict[str, Any]]:
        return [{"command": shlex.join(["mt-train", *words])}]

    codes = ["corpus.source=xa", "corpus.target=xb"]
    below = [
        *own,
        "corpus=files",
        *codes,
        f"corpus.root={folder}",
        "corpus.train=train",
        "corpus.valid=valid",
        "corpus.test=[test]",
    ]
    files = [*own, *codes, f"corpus.train=[[{folder}/train.xa,{folder}/train.xb]]", "corpus.weights=[1]", *sides]
    several = [*own, f"corpus.train=[{{text: {folder}/train, {LANGUAGES}}}]", "corpus.valid=10", "corpus.test=10"]
    rerun = ["--rerun", "runs/x", "trainer.label_smoothing=0.2"]
    script = [{"command": "train_it.py 3"}]
    return {
        "files": (call(settings), None),
        "a list": (call(files), None),
        "languages of their own": (call(several), None),
        "a rerun": (call(rerun), train_config(["corpus=files", *settings]).as_dict()["corpus"]),
        "a root": (call(below), {**train_config(below).as_dict()["corpus"]}),
        "a script": (script, train_config(["corpus=files", *settings]).as_dict()["corpus"]),
        "a script with a list": (script, train_config(["corpus=files", *files]).as_dict()["corpus"]),
    }


def test_more_text_is_trained_on_beside_the_old(
    settings: list[str], trained: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never the useless model, and with its own settings."""
    monkeypatch.chdir(tmp_path)
    for kind, (calls, corpus) in kinds(settings, trained).items():
        advised = more_text_command(calls, "x", corpus)
        assert "init_from" not in advised, kind
        assert "run.name=x-more" in advised
        done = command("mt-train", "--prepare", *typed(advised, tmp_path, trained), f"run.prepared={tmp_path / kind}")
        assert done.code == 0, f"{kind}: {advised}: {done.err}"
        assert "2 texts" in done.err or "120 pairs" in done.err, f"{kind}: {done.err}"


def test_a_continuation_is_understood(
    trained: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for options in ({"updates": 5}, {"epochs": 2, "updates": 0}, {"max_minutes": 1.0}, {"patience": 2}):
        state = TrainState(update=5, seconds=60.0, plateau=9 if "patience" in options else 0)
        text = continuation(TrainerConfig(**options), state)[1]
        done = command("mt-train", *typed(text, tmp_path, trained), "--print-config")
        assert done.code == 0, f"{text}: {done.err}"


def test_text_in_one_language_is_added_to_a_run_that_stands(
    settings: list[str], trained: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("files", "a list"):
        advised = monolingual_command(kinds(settings, trained)[kind][0], "x")
        assert "recipe.forward={run} corpus.monolingual=TEXT" in advised
        if kind == "files":
            done = command("mt-train", "--check", *typed(advised, tmp_path, trained))
            assert done.code == 0, f"{kind}: {advised}: {done.err}"
            assert " forward " not in done.err
    assert monolingual_command([{"command": "train_it.py 3"}], "x") == ""


def test_a_data_set_has_no_place_for_files_so_that_its_model_is_trained_on(trained: Path) -> None:
    calls = [{"command": "mt-train corpus=hub corpus.path=x/y corpus.train=train"}]
    advised = more_text_command(calls, "x", {"name": "hub", "train": ["train"]})
    assert advised == "mt-train run.init_from={run} corpus=files corpus.train=MORE corpus.valid=auto"


def test_plugins_are_named_again() -> None:
    """A saved configuration never chooses which code runs."""
    named = "'plugins=[my_model,my_parts]'"
    calls = [{"command": "mt-train corpus.source=a corpus.train=b"}, {"command": f"mt-train --resume x {named}"}]
    assert with_plugins("mt-train --resume {run}", calls) == f"mt-train --resume {{run}} {named}"
    assert with_plugins("mt-train --resume {run}", calls[:1]) == "mt-train --resume {run}"
    assert (
        more_text_command([{"command": f"mt-train corpus.source=a corpus.train=b {named}"}], "x").count("plugins=") == 1
    )
