"""What to type after a training, for the advice of its verdict. {run} stands for the run's folder."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tolka.config.typed import split_setting
from tolka.evaluation.verdict import minutes_text
from tolka.text.corpora.base import as_typed
from tolka.training.options import TrainerConfig
from tolka.training.state import TrainState

_FEW_UPDATES = 1000
_NOT_OF_RECIPES = "metrics.bootstrap", "corpus.weights", "corpus.temperature"
_PROGRAMS = "mt-train", "train.py", "__main__.py"  # as itself, by torchrun -m, and as python -m tolka train


def continuation(options: TrainerConfig, state: TrainState, horizon: int = 0) -> tuple[str, str]:
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
    return f"the same command with {setting} goes on{takes}", f"mt-train --resume {{run}} {setting}"


def more_text_command(calls: Sequence[Mapping[str, Any]], name: str, corpus: Mapping[str, Any] | None = None) -> str:
    """Return the command that trains again on the old text and more, whose place MORE has.

    calls: the recorded calls of mt-train for this run, the first one first. name: of the run. corpus: its settings of
    the corpus, for a run whose typed settings name no files.
    """
    typed = _typed(calls)
    if typed.get("corpus", "files") == "files" and "corpus.train" in typed:
        if typed.get("model.dropout") in ("0", "0.0"):  # with which any model learns a small text by heart
            del typed["model.dropout"]
        texts = typed["corpus.train"]
        texts = texts[1:-1] if texts[:1] == "[" else texts
        # Weights are one for each text.
        others = {key: value for key, value in typed.items() if key != "corpus.weights"}
        return _command({**others, "corpus.train": f"[{texts},{_more_like(texts)}]"}, f"{name}-more")
    if corpus and corpus["name"] == "files":
        texts = ",".join(map(as_typed, corpus["train"]))
        own = [f"corpus.train=[{texts},{_more_like(texts)}]", "corpus.weights=[]", f"run.name={name}-more"]
        return f"mt-train --rerun {{run}} {shlex.join(own)}"
    # Of a sample or a data set, which have no place for files.
    return "mt-train run.init_from={run} corpus=files corpus.train=MORE corpus.valid=auto"


def monolingual_command(calls: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the command that adds text in the target language alone, whose place TEXT has; "" if no command is known.

    The recipe compares with this run, and trains it no second time. docs/howto/recipes.md says what it gained: 5.4 BLEU
    on 10 000 pairs of sentences with 100 000 other lines, and 3.4 on 10 000 interface strings with 18 535.
    """
    typed = _typed(calls)
    if not typed or not {"corpus.train", "corpus.path", "experiment"} & {*typed} or "run.init_from" in typed:
        return ""
    # The recipe joins the texts, and compares.
    kept = {key: value for key, value in typed.items() if key not in _NOT_OF_RECIPES}
    rest = _command(kept, f"{name}-back").removeprefix("mt-train ")
    # It compares with this run where that was tested.
    forward = "recipe.forward={run} " if {"corpus.test", "experiment"} & {*typed} else ""
    return f"mt-train recipe=back_translation {forward}corpus.monolingual=TEXT {rest}"


def with_plugins(command: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """Return a command with the plugins that were typed for the last call: no configuration loads them by itself."""
    words = shlex.split(str(calls[-1].get("command", ""))) if command and calls and "plugins=" not in command else []
    return " ".join([command, *(shlex.quote(word) for word in words if word.startswith("plugins="))])


def _more_like(texts: str) -> str:
    """Return MORE, with the languages of the first of several texts if that says its own."""
    codes = re.findall(r"\b(source|target):\s*([\w-]+)", texts.partition("}")[0])
    return as_typed({"text": "MORE", **dict(codes)}) if codes else "MORE"


def _typed(calls: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the settings of the first call; none where they are not known, as of --rerun and of a script."""
    program, *words = shlex.split(str(calls[0].get("command", "")) if calls else "") or [""]
    settings = [split_setting(word) for word in words]
    if program not in _PROGRAMS or not all(each.key and each.equals and not each.change for each in settings):
        return {}
    return {each.key: each.value for each in settings}


def _command(typed: Mapping[str, str], name: str) -> str:
    settings = {key: value for key, value in typed.items() if key != "run.dir"} | {"run.name": name}
    return shlex.join(["mt-train", *(f"{key}={value}" for key, value in settings.items())])
