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


def go_on(options: TrainerConfig, state: TrainState, horizon: int = 0) -> tuple[str, str]:
    """Return how the training would go on, by what has ended it: in words with its minutes, and a command.

    horizon: the update from which on the rate stays at its floor; 0 = by what ends the training. After it, to go on
    would bring nothing, and another run is to have its rate fall later.
    """
    minutes, horizon = state.seconds / 60, horizon if state.update >= horizon else 0
    # A validation may have ended it shortly before.
    ended_by_minutes = options.max_minutes and minutes >= 0.95 * options.max_minutes
    if options.patience and (state.plateau or state.stale >= options.patience):
        setting = f"trainer.patience={2 * options.patience}"
        setting += f" scheduler.horizon={2 * state.update}" if horizon else ""
        if ended_by_minutes:  # they would end the other run as well
            setting += f" trainer.max_minutes={2 * options.max_minutes:g}"
        return f"another run with {setting} waits for longer", f"mt-train --rerun {{run}} {setting}"
    if ended_by_minutes:
        factor: float = max(2, math.ceil(_FEW_UPDATES / max(state.update, 1)))
        setting = f"trainer.max_minutes={factor * options.max_minutes:g}"
    elif 0 < options.updates <= state.update or not options.epochs:
        updates = max(2 * state.update, _FEW_UPDATES)
        setting, factor = f"trainer.updates={updates:g}", updates / state.update
    else:
        setting, factor = f"trainer.epochs={2 * options.epochs:g}", 2
    takes = "" if ended_by_minutes else f" for about {minutes_text(minutes * (factor - (not horizon)))}"
    if horizon:
        # Another limit would end it before the rate has fallen.
        limits = {"updates": math.ceil(factor * state.update), "max_minutes": math.ceil(factor * minutes)}
        for key, least in limits.items():
            if 0 < getattr(options, key) < least and key not in setting:
                setting += f" trainer.{key}={least}"
        setting += f" scheduler.horizon={round(factor * state.update)}"
        return f"another run with {setting}{takes}", f"mt-train --rerun {{run}} {setting}"
    return f"the same command with {setting} goes on{takes}", f"mt-train --rerun {{run}} run.dir={{run}} {setting}"


def on_more_text(calls: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the command that trains again on more text, whose place MORE has.

    calls: the recorded calls of mt-train for this run, the first one first. name: of the run.
    """
    typed = _typed(calls)
    if typed.get("model.dropout") in ("0", "0.0"):  # with which any model learns a small text by heart
        del typed["model.dropout"]
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
