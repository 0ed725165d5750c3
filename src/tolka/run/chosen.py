"""Settings that nobody has typed, chosen from the training text and the machine before a run begins."""

from collections.abc import Sequence
from dataclasses import replace

from tolka.auto.rules import FRESH, TUNED, Choice, choose, choose_tuning
from tolka.auto.text_facts import TextFacts
from tolka.config.choices import preset
from tolka.config.schemas import TrainConfig, cross_check, rebuild
from tolka.config.short_runs import fit_schedule
from tolka.errors import ConfigError, DataError, TolkaError
from tolka.formats.any_model import tokenizer_of
from tolka.models.auto import AutoOptions
from tolka.run.inputs import open_corpus
from tolka.system.device import choose_device
from tolka.system.memory import total_memory_bytes
from tolka.system.progress import silent
from tolka.training.saved_settings import begun_settings, flat

_LEAST_MEMORY = 7e8  # bytes: 0.6 GB were measured with the smallest choice


def with_chosen_settings(config: TrainConfig) -> tuple[TrainConfig, list[Choice]]:
    """Return the configuration with the settings of `run.choose` filled in, and what was chosen now.

    A run that has begun continues with what it chose then. DataError or ConfigError where the text cannot be read, or
    where typed settings do not fit.
    """
    if not config.run.choose:
        return config, []
    before, chosen = config.as_dict(), config.as_dict()
    begun = _chosen_before(config)
    choices = [] if begun else _choices(config)
    _check_family(config, begun)
    for choice in begun or choices:
        group, _, key = choice.key.partition(".")
        if choice.key not in config.run.choose:
            # A typed key of a group that is chosen.
            if key in before[group]:
                chosen[group][key] = before[group][key]
            continue
        if key:
            chosen[group][key] = choice.value
        else:
            chosen[group] = preset(group, choice.value) if isinstance(choice.value, str) else dict(choice.value)
    if choices:
        chosen["scheduler"], _ = fit_schedule(
            chosen["scheduler"],
            chosen["trainer"]["updates"],
            () if "scheduler.warmup" in config.run.choose else ("warmup",),
        )
    chosen["run"]["choose"] = []
    complete = rebuild(chosen)
    cross_check(complete)
    values = flat(complete.as_dict())
    return complete, [
        replace(each, value=values.get(each.key, each.value)) for each in choices if each.key in config.run.choose
    ]


def _choices(config: TrainConfig) -> list[Choice]:
    """Return what the training text calls for; ConfigError on a machine with too little memory for any model."""
    memory = total_memory_bytes()
    if 0 < memory < _LEAST_MEMORY:
        raise ConfigError(
            f"this machine has {memory / 1e9:.1f} GB of memory, and training takes {_LEAST_MEMORY / 1e9:.1f} GB at "
            "least: use another one"
        )
    try:
        corpus, _ = open_corpus(config, silent)
    except DataError:  # for the held-out sets; a training, or a check of the text, says so itself
        corpus = config.corpus.open()
    start = config.run.init_from
    tokenizer, form = tokenizer_of(start) if start else None, config.cleaning.characters
    text = TextFacts.of(corpus, tokenizer, form)
    if text.new_language and "corpus.both_directions" in config.run.choose:
        text = replace(text, pairs=2 * text.pairs, validation=2 * text.validation)
    tokens = 0 if "batching.tokens" in config.run.choose else config.batching.tokens * config.trainer.accumulate
    if not isinstance(config.model, AutoOptions):
        return choose_tuning(text, tokens, config.model.d_model)
    return choose(text, config.model.family, choose_device(config.trainer.device).type == "cuda", tokens)


def _check_family(config: TrainConfig, begun: Sequence[Choice]) -> None:
    """Raise ConfigError where a run that has begun is of another family than is typed now."""
    names = [choice.value["name"] for choice in begun if choice.key == "model"]
    wanted = getattr(config.model, "family", "any")
    if names and wanted not in ("any", *names):
        raise ConfigError(
            f"{config.run.folder} holds a run of another kind of model ({names[0]}) than model.family={wanted}: choose "
            "another run.name"
        )


def _chosen_before(config: TrainConfig) -> list[Choice]:
    """Return what a run has begun with, which nobody needs the reasons of again; [] where none has begun."""
    begun = begun_settings(config.run.folder)
    if not begun:
        return []
    try:
        saved = rebuild(begun).as_dict()
    except TolkaError:  # which `claim` reports
        return []
    found = {**saved, **flat(saved)}
    return [Choice(key, found[key], "") for key in dict.fromkeys((*FRESH, *TUNED)) if key in found]
