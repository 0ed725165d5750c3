"""Settings that nobody has typed, chosen from the training text and the machine before a run begins."""

from dataclasses import replace
from pathlib import Path

from tolka.auto.memory import MEMORY, ModelSize, choose_memory
from tolka.auto.rules import FRESH, TUNED, Choice, choose, choose_tuning
from tolka.auto.text_facts import TextFacts
from tolka.config.choices import preset
from tolka.config.dependent_settings import fit_schedule
from tolka.config.origins import OPEN
from tolka.config.schemas import TrainConfig, rebuild
from tolka.errors import ConfigError, DataError, TolkaError
from tolka.formats.any_model import tokenizer_of
from tolka.models.auto import AutoOptions
from tolka.models.embeddings import VOCABULARY_TENSORS
from tolka.run.texts import open_corpus
from tolka.system.device import choose_device
from tolka.system.memory import total_memory_bytes
from tolka.system.progress import silent
from tolka.training.saved_settings import begun_settings, flat

_SHARE = 0.8  # of a machine's memory; other programs have the rest


def with_chosen_settings(config: TrainConfig) -> tuple[TrainConfig, list[Choice]]:
    """Return the configuration with the open settings filled in, and what was chosen now.

    A run that has begun continues with what it chose then. DataError or ConfigError where the text cannot be read, or
    where typed settings do not fit.
    """
    if not config.run.open_settings:
        return config, []
    before, chosen, is_open = config.as_dict(), config.as_dict(), {*config.run.open_settings}
    begun = _earlier_choices(config.run.folder)
    choices = [] if begun else _choices(config)
    names = [choice.value["name"] for choice in begun if choice.key == "model"]
    wanted = getattr(config.model, "family", "any")
    if names and wanted not in ("any", *names):
        raise ConfigError(
            f"{config.run.folder} holds a run of another kind of model ({names[0]}) than model.family={wanted}: choose "
            "another run.name"
        )
    origins = {key: by for key, by in config.run.origins.items() if by != OPEN}
    for choice in begun or choices:
        group, _, key = choice.key.partition(".")
        if choice.key not in is_open:
            # A typed key of a group that is chosen.
            if key in before[group]:
                chosen[group][key] = before[group][key]
            continue
        by = "the run as it began" if begun else "chosen"
        if key:
            chosen[group][key], origins[choice.key] = choice.value, by
        else:
            new = preset(group, choice.value) if isinstance(choice.value, str) else dict(choice.value)
            own = {key: value for key, value in before[group].items() if key in new and f"{group}.{key}" in origins}
            chosen[group] = new | own
            by = by if begun else f"{group}={choice.value}, chosen"
            origins[group] = by
    if choices:
        typed = () if "scheduler.warmup" in is_open else ("warmup",)
        chosen["scheduler"] |= fit_schedule(chosen["scheduler"], chosen["trainer"]["updates"], typed)
    chosen["run"]["origins"] = origins
    complete = rebuild(chosen)
    complete.check()
    values = flat(complete.as_dict())
    return complete, [replace(each, value=values.get(each.key, each.value)) for each in choices if each.key in is_open]


def _choices(config: TrainConfig) -> list[Choice]:
    """Return the settings that the training text calls for and memory allows; ConfigError where nothing fits."""
    memory, is_open = total_memory_bytes(), {*config.run.open_settings}
    try:
        corpus = open_corpus(config.corpus, config.run.prepared_folder, silent)
    except DataError:  # for the held-out sets; a training, or a check of the text, says so itself
        corpus = config.corpus.open()
    start = config.run.init_from
    tokenizer, form = tokenizer_of(start) if start else None, config.cleaning.characters
    text = TextFacts.of(corpus, tokenizer, form)
    if text.new_languages and "corpus.both_directions" in is_open:
        text = replace(text, pairs=2 * text.pairs, validation=2 * text.validation)
    tokens = 0 if "batching.tokens" in is_open else config.batching.tokens * config.trainer.accumulate
    device, model = choose_device(config.trainer.device), config.model
    if isinstance(model, AutoOptions):
        return choose(text, model.family, device.type == "cuda", tokens, model.leaves_to)
    assert tokenizer is not None
    adapters = bool(config.finetuning.lora_rank)
    choices = choose_tuning(text, tokens, model.d_model, adapters)
    # Of a GPU nobody has measured what fits; batching.tokens=auto tries it there.
    machine = 0.0 if device.type == "cuda" else _SHARE * memory
    limit = 1e9 * config.trainer.memory or machine
    if not limit or config.batching.auto or config.trainer.devices != 1:
        return choices
    open_values = {choice.key: choice.value for choice in choices if choice.key in is_open}
    new = open_values.get("tokenizer.extend", config.tokenizer.extend)
    shapes = model.shapes(tokenizer.source_size + new, tokenizer.target_size + new, tokenizer.shared)
    named = shapes.named_parameters()
    subwords = {name.split(".")[0]: each.numel() for name, each in named if name in VOCABULARY_TENSORS[:3]}
    size = ModelSize(shapes.parameter_count(), subwords, model.d_model)
    frozen = size.subwords.keys() <= {*config.finetuning.freeze}
    trained = "adapters" if adapters else "layers" if frozen else "all"
    batch = open_values.get("batching.tokens", config.batching.tokens)
    least, accumulate = config.batching.max_length + 1, config.trainer.accumulate
    fitting = choose_memory(size, trained, batch, least, accumulate, limit, is_open)
    if any(choice.key == "finetuning.lora_rank" for choice in fitting):
        choices = choose_tuning(text, tokens, model.d_model, adapters=True)
    return [*(each for each in choices if each.key not in {choice.key for choice in fitting}), *fitting]


def _earlier_choices(folder: Path) -> list[Choice]:
    """Return the settings that a run began with, without their reasons; [] where none has begun."""
    begun = begun_settings(folder)
    if not begun:
        return []
    try:
        saved = rebuild(begun).as_dict()
    except TolkaError:  # which `claim` reports
        return []
    found = {**saved, **flat(saved)}
    return [Choice(key, found[key], "") for key in dict.fromkeys((*FRESH, *TUNED, *MEMORY)) if key in found]
