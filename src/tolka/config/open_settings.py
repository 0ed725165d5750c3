"""Which settings are left open by the user, to be chosen from the training text."""

from collections.abc import Collection
from dataclasses import asdict, fields

from tolka.auto.memory import MEMORY
from tolka.auto.rules import FRESH, TUNED
from tolka.config.origins import Composition, Rank
from tolka.models.auto import AutoOptions


def names_model(typed: Collection[str]) -> bool:
    """Return whether a model is named, or has settings that only a named one has, such as model.heads."""
    chosen = {f"model.{field.name}" for field in fields(AutoOptions)} - {"model.parameters"}
    return bool({*typed} & {"model", "run.init_from"}) or any(key.startswith("model.") for key in {*typed} - chosen)


def settings_to_choose(composed: Composition, may_tune: bool) -> list[str]:
    """Return the settings that are chosen from the training text, which are those that nobody has set.

    Only with model=auto, and where `may_tune`, for a model to start from.
    """
    is_tuned = may_tune and bool(composed.get("run.init_from"))
    if composed.get("model.name") != AutoOptions.name and not is_tuned:
        return []
    tokenizer, open_model = composed.values["tokenizer"], asdict(AutoOptions())
    # Another type of subwords says nothing of their number, but there are as many words and characters as there are.
    counts_subwords = not tokenizer.get("model") and tokenizer.get("type") not in ("char", "word")

    def is_set(key: str) -> bool:
        group, _, option = key.partition(".")
        if group == "model":
            return bool(option) and composed.get(key) != open_model[option]
        if group == "tokenizer" and not counts_subwords:
            return True
        # A corpus is always named, and says nothing of its directions.
        by_choice = group not in ("corpus", "tokenizer") and composed.rank(group) >= Rank.EXPERIMENT
        return by_choice or composed.rank(key) >= Rank.EXPERIMENT

    # An end of one's own is the only one, and a schedule of one's own has its own end.
    ends = ["trainer.updates", "trainer.epochs"]
    left_out = [*ends, "trainer.patience"] if is_set("scheduler") else [*ends] if any(map(is_set, ends)) else []
    keys = dict.fromkeys((*TUNED, *MEMORY) if is_tuned else FRESH)
    return [key for key in keys if not is_set(key) and key not in left_out]
