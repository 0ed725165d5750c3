"""mt-train --check: the faults of a text, what to do about them, and what training would take."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]


def append(corpus: Path, split: str, source: str, target: str) -> None:
    for language, line in (("xa", source), ("xb", target)):
        with (corpus / f"{split}.{language}").open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")


def test_good_text(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    assert "train: 60 pairs" in outcome.err
    assert "these settings keep: 60 pairs" in outcome.err
    assert "on this machine: " in outcome.err
    assert "5 updates" in outcome.err
    assert outcome.out == ""
    assert not (tmp_path / "run").exists()


def test_faults_leaks_and_advice(command: Command, tiny: list[str], corpus: Path) -> None:
    for _ in range(5):
        append(corpus, "train", "<b>ferry</b> lantern .", "<b>fjon</b> tolo .")
    append(corpus, "test", "FERRY lantern!", "fjon tolo")
    append(corpus, "train", "ferry lantern .", "fjon tolo .")
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 0
    for expected in (
        "markup",
        "61: <b>ferry</b> lantern .",
        "test: whole pair in the training text",
        "cleaning.markup=strip",
    ):
        assert expected in outcome.err, expected
    assert "take the sentences of test out of the training text" in outcome.err
    found = json.loads(command("mt-train", "--check", "--json", *tiny).out)
    counts = {finding["what"]: finding["count"] for finding in found["training"][0]["findings"]}
    assert counts["markup"] == 5
    assert counts["a pair that came before"] >= 4
    assert [
        leak["count"] for leak in found["leaks"] if "whole pair" in leak["what"] and leak["what"].startswith("test")
    ] >= [1]
    assert found["pace"]["updates"] == 5
    assert found["pace"]["tokens_per_second"] > 0


def test_text_that_cannot_be_trained_on(command: Command, tiny: list[str], corpus: Path) -> None:
    with (corpus / "train.xb").open("ab") as stream:
        stream.write("Größe\n".encode("latin-1"))
    outcome = command("mt-train", "--check", *tiny)
    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    assert "this text cannot be trained on yet: " in outcome.err
    assert "lines that the target has more than the other side" in outcome.err
    assert "find the line that one side lacks" in outcome.err


def test_what_does_not_go_together(command: Command, tiny: list[str]) -> None:
    assert "--json goes with --check" in command("mt-train", "--json", *tiny).error
    assert "leave out -m" in command("mt-train", "-m", "--check", *tiny, "run.seed=1,2").error
    assert command("mt-train", "--check", "corpus=files", "corpus.train=nowhere", "corpus.valid=nowhere").code == 1
