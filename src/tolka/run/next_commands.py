"""What to type after a training, for the advice of its verdict. {run} stands for the run's folder."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tolka.config.typed import split_setting
from tolka.evaluation.verdict import minutes_text
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState

_FEW_UPDATES = 1000
_PROGRAMS = "mt-train", "train.py", "__main__.py"  # as itself, by torchrun -m, and as python -m tolka train


def go_on(options: TrainerConfig, state: TrainState) -> tuple[str, str]:
    """Return how the training would go on, by what has ended it: in words with its minutes, and a command."""
    minutes = state.seconds / 60
    # A validation may have ended it shortly before.
    ended_by_minutes = options.max_minutes and minutes >= 0.95 * options.max_minutes
    if options.patience and (state.plateau or state.stale >= options.patience):
        setting = f"trainer.patience={2 * options.patience}"
        if ended_by_minutes:  # they would end the other run as well
            setting += f" trainer.max_minutes={2 * options.max_minutes:g}"
        return f"another run with {setting} waits for longer", f"mt-train --rerun {{run}} {setting}"
    if ended_by_minutes:
        factor = max(2, math.ceil(_FEW_UPDATES / max(state.update, 1)))
        setting, words = f"trainer.max_minutes={factor * options.max_minutes:g}", "goes on"
    else:
        ended_by_updates = 0 < options.updates <= state.update or not options.epochs
        key, value = (
            ("updates", max(2 * state.update, _FEW_UPDATES)) if ended_by_updates else ("epochs", 2 * options.epochs)
        )
        more = minutes * (value / state.update - 1 if ended_by_updates else 1)
        setting, words = f"trainer.{key}={value:g}", f"goes on for about {minutes_text(more)}"
    return f"the same command with {setting} {words}", f"mt-train --rerun {{run}} run.dir={{run}} {setting}"


def on_more_text(calls: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the command that trains again on more text, whose place MORE has.

    calls: the recorded calls of mt-train for this run, the first one first. name: of the run.
    """
    typed = _typed(calls)
    if "corpus.train" not in typed:  # of a sample, a data set or an experiment
        return "mt-train run.init_from={run} corpus=files corpus.train=MORE corpus.valid=auto"
    texts = typed["corpus.train"]
    texts = texts[1:-1] if texts[:1] == "[" else texts
    return _command({**typed, "corpus.train": f"[{texts},MORE]"}, f"{name}-more")


def from_parent(calls: Sequence[Mapping[str, Any]], name: str, parent: str) -> str:
    """Return the command that trains a model that knows the languages; "" if no call's command is known."""
    typed = {key: value for key, value in _typed(calls).items() if not key.startswith(("model", "tokenizer"))}
    return _command({**typed, "run.init_from": parent}, f"{name}-tuned") if parent and typed else ""


def _typed(calls: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the settings of the first call; none where it was not one of mt-train with settings alone."""
    program, *words = shlex.split(str(calls[0].get("command", ""))) if calls else [""]
    settings = [split_setting(word) for word in words]
    if program not in _PROGRAMS or not all(each.equals and not each.change for each in settings):
        return {}
    return {each.key + each.package: each.value for each in settings}


def _command(typed: Mapping[str, str], name: str) -> str:
    settings = {key: value for key, value in typed.items() if key != "run.dir"} | {"run.name": name}
    return shlex.join(["mt-train", *(f"{key}={value}" for key, value in settings.items())])
