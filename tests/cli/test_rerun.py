"""A run tells where it comes from, can be run again, and can be taken over with other settings."""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tolka.run import provenance

Command = Callable[..., Any]


def calls(run: Path) -> list[dict[str, Any]]:
    return list(json.loads((run / "provenance.json").read_text("utf-8"))["calls"])


def weights(run: Path) -> bytes:
    return (run / "last" / "model.safetensors").read_bytes()


def test_each_call_is_recorded(command: Command, begun: list[str], tmp_path: Path) -> None:
    assert command("mt-train", *begun, "trainer.updates=7").code == 0
    first, second = calls(tmp_path / "run")
    assert first["versions"]["torch"] == version("torch")
    assert first["machine"]["memory_bytes"] > 10**8
    assert sorted(first["texts"]) == ["test: test", "train: train", "valid: valid"]
    assert first["texts"] == second["texts"]
    assert first["other_settings"] == second["other_settings"] == []
    assert first["started"] <= second["started"]


@pytest.mark.usefixtures("begun")
def test_resume_goes_on_in_the_run_s_folder(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command("mt-train", "--resume", run, "trainer.updates=7").code == 0
    assert len(calls(run)) == 2
    assert json.loads((run / "metrics.jsonl").read_text("utf-8").splitlines()[-1])["update"] == 7
    own = "--resume goes on in the run's own folder"
    exclusive = "argument --rerun: not allowed with argument --resume"
    for more, said in ((["--rerun", run], exclusive), ([f"run.dir={tmp_path}"], own), (["run.name=x"], own)):
        refused = command("mt-train", "--resume", run, *more)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert said in refused.err
    assert "there is no such file; a run's folder has one" in command("mt-train", "--resume", tmp_path / "none").err


@pytest.mark.usefixtures("begun")
def test_the_same_once_more_has_the_same_weights(command: Command, tmp_path: Path) -> None:
    outcome = command("mt-train", "--rerun", str(tmp_path / "run"))
    assert outcome.code == 0
    assert "different from the run before" not in outcome.err
    assert weights(tmp_path / "run-again") == weights(tmp_path / "run")


@pytest.mark.usefixtures("begun")
def test_with_its_own_folder_a_run_goes_on_under_its_name(command: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    updates = json.loads((run / "last" / "state" / "state.json").read_text())["train"]["update"]
    outcome = command("mt-train", "--rerun", str(run), f"run.dir={run}", f"trainer.updates={updates + 1}")
    assert outcome.code == 0, outcome.err
    assert f"resuming from update {updates}" in outcome.err
    assert json.loads((run / "last" / "state" / "state.json").read_text())["train"]["update"] == updates + 1
    assert "name: run\n" in (run / "config.yaml").read_text("utf-8")
    assert not (tmp_path / "run-again").exists()


@pytest.mark.slow
def test_what_is_unlike_is_said_and_settings_can_be_others(
    command: Command, tiny: list[str], corpus: Path, tmp_path: Path
) -> None:
    run, other = tmp_path / "run", tmp_path / "한 글 (2)"
    assert command("mt-train", *tiny).code == 0
    recorded = {"calls": calls(run)}
    recorded["calls"][0]["versions"]["torch"] = "2.0.1"
    (run / "provenance.json").write_text(json.dumps(recorded))
    for language in ("xa", "xb"):
        with (corpus / f"train.{language}").open("a") as stream:
            stream.write("lantern ferry\n")
    outcome = command("mt-train", "--rerun", str(run), f"run.dir={other}", "optimizer.lr=2e-3", "trainer.updates=4")
    assert outcome.code == 0, outcome.err
    assert f"different from the run before: torch: 2.0.1, now {version('torch')}" in outcome.err
    assert "different from the run before: train: train: " in outcome.err
    state = json.loads((other / "last" / "state" / "state.json").read_text())
    assert state["train"]["update"] == 4
    assert "lr: 0.002" in (other / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rerun", "nowhere"], "nowhere/config.yaml: there is no such file"),
        (["--rerun", "RUN", "model=rnn"], "'model' is a group"),
        (["--rerun", "RUN", "optimizer.rl=1"], "unknown key 'optimizer.rl'"),
        (["-m", "--rerun", "RUN"], "not allowed with argument"),
    ],
)
def test_complaints(command: Command, tiny: list[str], tmp_path: Path, arguments: list[str], complaint: str) -> None:
    (tmp_path / "run").mkdir()
    printed = command("mt-train", "--print-config", *tiny)
    (tmp_path / "run" / "config.yaml").write_text(printed.out)
    outcome = command("mt-train", *[each.replace("RUN", str(tmp_path / "run")) for each in arguments])
    assert outcome.code in (1, 2)
    assert complaint in outcome.error
    assert len(outcome.error.splitlines()) == 1


def test_a_run_can_be_taken_over_with_other_settings(command: Command, begun: list[str], tmp_path: Path) -> None:
    refused = command("mt-train", *begun, "optimizer.lr=0.5", "trainer.updates=7")
    assert (refused.code, "run.override=true" in refused.error) == (2, True)
    outcome = command("mt-train", *begun, "optimizer.lr=0.5", "trainer.updates=7", "run.override=true")
    assert outcome.code == 0
    assert "run.override: from here on other settings hold: optimizer.lr (" in outcome.err
    assert "resuming from update 5" in outcome.err
    assert [len(call["other_settings"]) for call in calls(tmp_path / "run")] == [0, 1]
    assert "lr: 0.5" in (tmp_path / "run" / "config.yaml").read_text()


def test_what_cannot_be_read_is_as_good_as_nothing(tmp_path: Path) -> None:
    assert provenance.recorded_calls(tmp_path) == []
    (tmp_path / "provenance.json").write_text("{")
    assert provenance.recorded_calls(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{1: 2}",
        "? [a]\n: b",
        "&a {run: *a}",
        "[" * 5000,
        "run: {seed: " + "9" * 5000 + "}",
        "run: {name: &a [*a]}",
        "model: {share_embeddings: [1]}",
        "run: {2020-01-01: 1}",
        "b0: &l0 [x, x]\n" + "".join(f"b{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 9)),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_run_whose_settings_are_odd_is_refused_in_one_line(command: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    outcome = command("mt-train", "--rerun", str(tmp_path), "--print-config")
    assert outcome.code in (1, 2)
    assert len(outcome.error) < 1500


def test_a_setting_that_cannot_be_read_is_refused_in_one_line(command: Command, trained: Path) -> None:
    """And nothing is resolved in what can: a name stands as it is typed."""
    unread = command("mt-train", "--rerun", str(trained), "trainer.updates=[", "--print-config")
    assert (unread.code, unread.error.startswith("cannot read '")) == (2, True)
    for setting, complaint in (
        ("trainer.updates=*x", "trainer.updates ('*x') must be a whole number"),
        (f"run.seed={'9' * 5000}", "run.seed (inf) must be a whole number"),
        ("~trainer.ema=0", "~trainer.ema=0: settings are key=value here, without ~"),
    ):
        outcome = command("mt-train", "--rerun", str(trained), setting, "--print-config")
        assert (outcome.code, complaint in outcome.error) == (2, True), outcome.error
    printed = command("mt-train", "--rerun", str(trained), "run.name=${x", "--print-config").out
    assert yaml.safe_load(printed)["run"]["name"] == "${x"


@pytest.mark.slow
def test_a_finished_run_that_trains_no_further_keeps_its_settings(
    command: Command, begun: list[str], tmp_path: Path
) -> None:
    config = tmp_path / "run" / "config.yaml"
    before = config.read_bytes()
    for further in (["trainer.updates=3"], ["trainer.max_minutes=1e-6", "trainer.updates=9"], ["trainer.samples=1"]):
        outcome = command("mt-train", *begun, *further)
        assert "training ends at update 5" in outcome.err, further
        assert config.read_bytes() == before
    assert command("mt-train", *begun, "trainer.updates=7").code == 0
    assert b"updates: 7" in config.read_bytes()


def test_samples_are_shown_once_at_the_end(command: Command, tiny: list[str], tmp_path: Path) -> None:
    err = command("mt-train", *tiny, "trainer.samples=2", "trainer.validate_every=2").err
    assert err.count("  reference   ") == 2
    last = tmp_path / "run" / "samples" / "0000005.txt"
    assert err.index(f"samples of the last validation ({last}):") > err.index("training ends at update 5")
