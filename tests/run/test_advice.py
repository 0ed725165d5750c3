"""What a verdict advises can be typed, for a training from random weights and for a fine-tuning."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from evidences import BORDERS, SOUND, made

from tolka.evaluation.verdict import Commands, advice_of, verdict
from tolka.run.next_commands import continuation, more_text_command
from tolka.run.provenance import recorded_calls
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState

Command = Callable[..., Any]
MORE = {
    "forgotten": made(SOUND, began_as="runs/a", forgotten=[("old", "BLEU", 14.1, 10.1)]),
    "improving": made(SOUND, gained=2.0),
    "much text": SOUND,
    "little text": made(SOUND, pairs=9000),
}


def advised(run: Path, began_as: str) -> Iterator[list[str]]:
    """Yield the words of each command that is advised to a run, each once."""
    calls = recorded_calls(run)
    for state in (TrainState(update=5), TrainState(update=5, stale=4)):
        longer = continuation(TrainerConfig(updates=5), state, 0)
        commands = Commands(*longer, more_text_command(calls, "mine"))
        for evidence in (*(evidence for evidence, _ in BORDERS.values()), *MORE.values()):
            if began_as or not evidence.began_as:
                found = verdict(made(evidence, began_as=began_as), commands)
                yield from (shlex.split(each.command) for each in advice_of(found.as_dict(), run))


@pytest.mark.parametrize("is_tuned", [False, True], ids=["random weights", "fine-tuning"])
def test_every_advised_command_is_one(
    trained: Path, corpus: Path, command: Command, tmp_path: Path, is_tuned: bool
) -> None:
    run = tmp_path / "my run"
    run.symlink_to(trained)
    if is_tuned:  # as if it had begun as itself
        run = tmp_path / "tuned run"
        run.mkdir()
        for name in ("best", "last"):
            (run / name).symlink_to(trained / name)
        text = (trained / "config.yaml").read_text("utf-8")
        (run / "config.yaml").write_text(re.sub(r"init_from: .*", f"init_from: {trained / 'best'}", text))
    typed = {tuple(words): None for words in advised(run, str(trained) if is_tuned else "")}
    assert len(typed) >= 9
    for words in typed:
        program, *settings = (re.sub(r"MORE", str(corpus / "train"), word) for word in words)
        assert program in ("mt-train", "mt-translate")
        is_seen = {"mt-translate": [], "mt-train": ["--print-config"]}[program] if "--check" not in settings else []
        done = command(program, *settings, *is_seen, stdin=b"lantern kettle .\n")
        assert done.code == 0, (words, done.err)
