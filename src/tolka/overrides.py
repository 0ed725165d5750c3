"""What is typed on a command line becomes a configuration; what is seldom meant is said."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from tolka.checkpoint import load_settings
from tolka.compose import compose, takes_a_path
from tolka.config import (
    REGISTRIES,
    EvaluateConfig,
    RunConfig,
    TrainConfig,
    TranslateConfig,
    build_groups,
    cross_check,
    rebuild,
)
from tolka.errors import CheckpointError, ConfigError
from tolka.models.base import TRAINING_ONLY, spelt_out_options
from tolka.progress import say
from tolka.text.corpus import CorpusConfig
from tolka.text.lines import user_path
from tolka.training.run import saved_settings

_SHORT = {"batching.tokens=auto": "batching.auto=true"}  # an experiment's own number of tokens still counts


def train_config(overrides: Sequence[str]) -> TrainConfig:
    """The configuration of mt-train; ConfigError, all complaints at once, in one line."""
    overrides = _in_full(overrides)
    given = {override.partition("=")[0] for override in overrides}
    if "run.init_from" in given and "experiment" not in given:
        overrides = ["experiment=finetune", *overrides]
        given.add("experiment")
    values, choices = compose("train", overrides)
    values = _settled(values, given, choices)
    if values["run"]["init_from"]:
        values = _inherited(values, given)
    groups = build_groups(values)
    run: RunConfig = groups["run"]
    if not run.name:
        groups["run"] = replace(run, name=_default_name(groups["corpus"], choices))
    config = _without_idle_flow(TrainConfig(**groups), given)
    cross_check(config)
    config = _sized(config, given)
    for note in _notes(config, given, choices["experiment"]):
        say(f"note: {note}")
    return config


def rerun_config(run: Path, overrides: Sequence[str]) -> TrainConfig:
    """The configuration of a run, to be run again elsewhere: in run.dir, or in its own folder's name with -again.

    overrides: keys that shall have other values. CheckpointError when the run's own cannot be read.
    """
    overrides = _in_full(overrides)
    values = saved_settings(run / "config.yaml")
    if not isinstance(values, Mapping) or not all(isinstance(group, Mapping) for group in values.values()):
        raise CheckpointError(f"{run / 'config.yaml'} does not describe a run")
    groups = [override.partition("=")[0] for override in overrides if "." not in override.partition("=")[0]]
    if groups:
        raise ConfigError(f"--rerun takes single settings, as in trainer.device=cpu, and '{groups[0]}' is a group")
    again = f"{run.resolve().name}-again"
    here = {"run": {"name": again, "dir": str(run.resolve().parent / again), "override": False}}
    merged = OmegaConf.merge(OmegaConf.create(here), OmegaConf.from_dotlist([_quoted(each) for each in overrides]))
    given = cast(dict[str, dict[str, Any]], OmegaConf.to_container(merged))
    if any(override.startswith("run.name=") for override in overrides) and not _names_folder(overrides):
        given["run"]["dir"] = ""
    config = rebuild({**values, **{group: {**values.get(group, {}), **keys} for group, keys in given.items()}})
    cross_check(config)
    return config


def _in_full(overrides: Sequence[str]) -> list[str]:
    """With what is short for something else spelt out."""
    return [_SHORT.get(override, override) for override in overrides]


def _names_folder(overrides: Sequence[str]) -> bool:
    return any(override.startswith("run.dir=") for override in overrides)


def _quoted(override: str) -> str:
    """A path as YAML takes it for nothing else."""
    key, _, value = override.partition("=")
    return f"{key}={json.dumps(value, ensure_ascii=False)}" if takes_a_path(key) and value[:1] != "[" else override


def _settled(values: Mapping[str, Any], given: Collection[str], choices: Mapping[str, str]) -> dict[str, Any]:
    """The values, where an experiment sets keys of a kind that the command line has replaced by another.

    What the other kind does not know is left out; what it knows holds for it too. Both are said, for a learning rate
    is seldom right for two optimisers.

    given: the keys that the command line names; choices: the file taken in each group.
    """
    kept = dict(values)
    named = [group for group in REGISTRIES if group in given]
    if "experiment" not in given or not named:
        return kept
    _, own_choices = compose("train", [f"experiment={choices['experiment']}"])
    for group in named:
        if choices[group] == own_choices[group]:
            continue
        kind, own = f"{group}={choices[group]}", compose("train", [f"{group}={choices[group]}"])[0][group]
        asked = {
            key: value
            for key, value in values[group].items()
            if f"{group}.{key}" not in given and (key not in own or value != own[key])
        }
        kept[group] = {key: value for key, value in values[group].items() if key not in asked.keys() - own.keys()}
        setter = f"experiment={choices['experiment']} sets"
        for key, value in asked.items():
            if key in own:
                say(f"note: {group}.{key} is {value!r}, as {setter} it; {kind} alone would have {own[key]!r}")
            else:
                say(f"note: {group}.{key} ({value}), which {setter}, is left out: {kind} has no such key")
    return kept


def _inherited(values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The values, with the sizes and the tokenizer of the model in run.init_from where nothing else was asked for.

    Asked for is what the command line names (given), and what an experiment sets to something else than the default.

    ConfigError, with the keys, when something else was asked for that its weights cannot follow.
    """
    folder = user_path(str(values["run"]["init_from"]))
    saved, defaults = load_settings(folder), compose("train", [])[0]
    inherited, differing = dict(values), []
    for group in ("model", "tokenizer"):
        asked = {
            key: value
            for key, value in values[group].items()
            if group in given or f"{group}.{key}" in given or value != defaults[group].get(key)
        }
        inherited[group] = {**saved[group], **asked}
        own, now = saved[group], inherited[group]
        if group == "model":
            own, now = (_spelt_out(sizes, bool(saved["tokenizer"]["shared"])) for sizes in (own, now))
        differing += [
            f"{group}.{key} ({own.get(key)}, now {now.get(key)})"
            for key in asked
            if _listed(own.get(key)) != _listed(now.get(key)) and not key.endswith(TRAINING_ONLY)
        ]
    if differing:
        raise ConfigError(
            f"run.init_from ({folder}) has other sizes than were asked for: {', '.join(differing)}. "
            "Leave these settings out to go on with the model's own"
        )
    return inherited


def _listed(value: Any) -> Any:
    """A list of one text is as good as the text."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _spelt_out(sizes: Mapping[str, Any], shared: bool) -> Mapping[str, Any]:
    """A model's options so that equal sizes look equal; as they are where they make no model."""
    try:
        return spelt_out_options(sizes, shared)
    except ConfigError:
        return sizes


def translate_config(overrides: Sequence[str]) -> TranslateConfig:
    """The configuration of mt-translate."""
    return TranslateConfig(**build_groups(compose("translate", overrides)[0]))


def evaluate_config(overrides: Sequence[str]) -> EvaluateConfig:
    """The configuration of mt-eval."""
    return EvaluateConfig(**build_groups(compose("evaluate", overrides)[0]))


def _sized(config: TrainConfig, given: Collection[str]) -> TrainConfig:
    """With the width that model.parameters asks for; ConfigError when another was asked for too."""
    if not config.model.parameters or config.run.init_from:
        return config
    if "model.d_model" in given:
        raise ConfigError("model.parameters chooses model.d_model: set one of them")
    size, given_tokenizer = config.tokenizer.vocab_size, config.tokenizer.given()
    sizes = (given_tokenizer.source_size, given_tokenizer.target_size) if given_tokenizer else (size, size)
    return replace(config, model=config.model.sized(*sizes, config.tokenizer.shared))


def _without_idle_flow(config: TrainConfig, given: Collection[str]) -> TrainConfig:
    """Without the gradient flow that an experiment asks for, where there is no recurrence for it to go along."""
    if "trainer.gradient_flow" in given or config.model.recurrent:
        return config
    return replace(config, trainer=replace(config.trainer, gradient_flow=False))


def _default_name(corpus: CorpusConfig, choices: Mapping[str, str]) -> str:
    experiment = choices.get("experiment", "None")
    if experiment != "None":
        return experiment
    return f"{choices['corpus']}-{corpus.source}-{corpus.target}-{choices['model']}"


_OF_ANY_TOKENIZER = {"shared", "model"}  # keys that mean something for one that is trained already


def _notes(config: TrainConfig, given: Collection[str], experiment: str) -> Iterator[str]:
    """What is allowed, and seldom meant. given: the keys that the command line names."""
    one_text = len(getattr(config.corpus, "train", [])) == 1
    keys = {key.name for key in fields(config.tokenizer)}
    given_tokenizer = bool(config.tokenizer.model), "a tokenizer to train"
    # Key -> whether it has no effect, and what it lacks.
    idle = {
        "optimizer.lr": (config.scheduler.has_own_peak, "a schedule whose peak it is (this one has scheduler.lr_init)"),
        "trainer.average_of": (not config.trainer.average, "trainer.average"),
        "trainer.simcut_words": (not config.trainer.simcut, "trainer.simcut"),
        "finetuning.lora_alpha": (not config.finetuning.lora_rank, "finetuning.lora_rank"),
        "model.max_positions": (config.model.longest is None, "model.positions=learned"),
        **{f"tokenizer.{key}": given_tokenizer for key in keys - _OF_ANY_TOKENIZER},
        "corpus.weights": (one_text, "several texts in corpus.train"),
        "corpus.temperature": (one_text, "several texts in corpus.train"),
        "corpus.buffer": (not getattr(config.corpus, "streaming", False), "corpus.streaming=true"),
        "report.sentences": (not config.report.page, "report.page"),
    }
    for key, (without_effect, lacking) in idle.items():
        if key in given and without_effect:
            yield f"{key} has no effect without {lacking}"
    if config.run.init_from and experiment != "finetune" and "optimizer.lr" not in given:
        yield (
            f"the rate ({config.optimizer.lr:g}) is that of experiment={experiment}, which trains fresh weights; "
            "experiment=finetune, which run.init_from has by itself, goes on with a tenth of the usual rate"
        )
    longest, limit = config.batching.max_length + 1, config.model.longest
    if limit is not None and limit < longest:
        yield (
            f"the model has {limit} positions (model.max_positions), and a sentence may have {longest} pieces, </s> "
            "included (batching.max_length): those beyond share the last one"
        )
