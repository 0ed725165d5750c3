"""Which settings are left open by the user, to be chosen from the training text."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from typing import Any

from tolka.auto.memory import MEMORY
from tolka.auto.rules import FRESH, TUNED
from tolka.config.compose import ConfigSource, compose
from tolka.models.auto import AutoOptions
from tolka.training.saved_settings import flat


def names_model(typed: Collection[str]) -> bool:
    """Return whether a model is named, or has settings that only a named one has, such as model.heads."""
    chosen = {f"model.{field.name}" for field in fields(AutoOptions)} - {"model.parameters"}
    return bool({*typed} & {"model", "run.init_from"}) or any(key.startswith("model.") for key in {*typed} - chosen)


def settings_to_choose(
    values: Mapping[str, Any], typed: Collection[str], choices: Mapping[str, str], source: ConfigSource
) -> list[str]:
    """Return the settings that are chosen from the training text, which are those that nobody has set.

    Only with model=auto, and for a model to start from without an experiment or a file of the user's own. choices: the
    file of each group. In files, a value that equals the default is not set.
    """
    is_tuned = bool(values["run"]["init_from"]) and "experiment" not in typed and not source.primary
    if values["model"].get("name") != AutoOptions.name and not is_tuned:
        return []
    plain, composed = compose(["experiment=finetune"] if is_tuned else []), flat(values)
    defaults = flat(plain.values)
    # Another type of subwords says nothing of their number.
    tokenizer = values["tokenizer"]
    counted = {"tokenizer.vocab_size"} if tokenizer.get("model") or tokenizer.get("type") in ("char", "word") else set()
    groups = [group for group in choices if group in typed or choices[group] != plain.choices.get(group)]
    set_here = ({*groups, *typed} - {"tokenizer"}) | counted
    open_model = asdict(AutoOptions())

    def is_set(key: str) -> bool:
        group = key.partition(".")[0]
        if key == "model":
            return False
        if group == "tokenizer" and values["trainer"].get("teacher"):
            return True
        if group == "model":
            return bool(composed.get(key) != open_model[key.partition(".")[2]])
        differs = key in composed and composed[key] != defaults.get(key)
        # A corpus is always named, and says nothing of its directions.
        return key in set_here or (group in set_here and group != "corpus") or differs

    # An end of one's own is the only one, and a schedule of one's own has its own end.
    ends = ["trainer.updates", "trainer.epochs"]
    left_out = [*ends, "trainer.patience"] if is_set("scheduler") else [*ends] if any(map(is_set, ends)) else []
    return [
        key
        for key in dict.fromkeys((*TUNED, *MEMORY) if is_tuned else FRESH)
        if not is_set(key) and key not in left_out
    ]
