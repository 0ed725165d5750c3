"""mt-train --prepare: the text is ready, and nothing is trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_it_prepares_what_the_training_then_uses(command: Command, tiny: list[str], tmp_path: Path) -> None:
    outcome = command("mt-train", "--prepare", *tiny)
    assert outcome.code == 0
    assert outcome.out == ""
    assert "training text: 60 pairs, 60 kept" in outcome.err
    assert "the text is prepared: the same settings without --prepare train on it" in outcome.err
    assert not (tmp_path / "run").exists()
    [store] = (path for path in (tmp_path / "prepared").iterdir() if path.is_dir())
    trained = command("mt-train", *tiny)
    assert f"token store: {store} (reused)" in trained.err


def test_a_text_that_cannot_be_prepared_is_one_line(command: Command, tiny: list[str], corpus: Path) -> None:
    (corpus / "train.xa").write_bytes(b"k\xe4ttle\n")
    (corpus / "train.xb").write_text("mirka\n")
    outcome = command("mt-train", "--prepare", *tiny)
    assert outcome.code == 1
    assert "train.xa:1: not UTF-8" in outcome.error


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("-m", "-m trains several models, and goes with"),
        ("--check", "argument --check: not allowed with argument --pre"),
    ],
)
def test_what_it_does_not_go_with(command: Command, option: str, complaint: str) -> None:
    outcome = command("mt-train", "--prepare", option)
    assert outcome.code == 2
    assert outcome.error.startswith(complaint)
