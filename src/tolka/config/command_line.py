"""From the settings typed on a command line to a configuration, with notes on what is seldom intended."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tolka.config.compose import CONFIGS, ConfigSource, compose, compose_plainly, plainly_typed
from tolka.config.inherited import inherited
from tolka.config.plugins import load_plugins
from tolka.config.schemas import (
    REGISTRIES,
    EvaluateConfig,
    RunConfig,
    TrainConfig,
    build_groups,
    cross_check,
    rebuild,
)
from tolka.config.short_runs import LENGTHS, fit_schedule
from tolka.config.translate_command import translate_config as translate_config
from tolka.config.translate_command import with_long_keys
from tolka.config.typed import Settings, as_typed, parts, value_of
from tolka.errors import CheckpointError, ConfigError, TolkaError
from tolka.model_directory.upgrade import lost_settings, removal_message, upgrade_config
from tolka.system.progress import say
from tolka.text.scripts import check_code
from tolka.training.options import TrainerConfig
from tolka.training.saved_settings import begun_settings, saved_settings

_SHORT = {
    "batching.tokens=auto": "batching.auto=true",  # an experiment's own number of tokens still counts
    "trainer.devices=auto": "trainer.devices=0",
}


def train_config(
    overrides: Settings = (), source: ConfigSource = CONFIGS, *, trains: bool = True, **settings: Any
) -> TrainConfig:
    """Return the configuration of mt-train; ConfigError with all complaints in one line.

    overrides: as they are typed, or a mapping. source: YAML files of the user's own. trains: whether notes on the
    schedule matter. settings: further ones as keywords, a mapping for a group.

        train_config(["model=lstm", "trainer.updates=300"])
        train_config(model="lstm", trainer={"updates": 300})
    """
    overrides = in_full(load_plugins(as_typed(overrides, settings)))
    given = {parts(override)[1] for override in overrides}
    if "run.init_from" in given and "experiment" not in given:
        overrides = ["experiment=finetune", *overrides]
        given.add("experiment")
    composed = compose(overrides, source)
    values, choices = composed.values, composed.choices
    check_groups(values)
    values = _settled(values, given, choices, source)
    if values["run"]["init_from"]:
        values = inherited(values, given, choices, source)
    values["run"] = {**values["run"], "name": values["run"]["name"] or _default_name(values["corpus"], choices)}
    values = _by_epochs(values, given)
    values["scheduler"] = _scheduler(values, given, trains)
    values["cleaning"] = _cleaning(values, given)
    groups = build_groups(values)
    config = _without_idle_flow(TrainConfig(**groups), given)
    cross_check(config)
    _check_languages(config, given)
    _check_warmup(config, given)
    config = _sized(config, given)
    for note in _notes(config, given, choices["experiment"]):
        say(f"note: {note}")
    return config


def check_groups(values: Mapping[str, Any]) -> None:
    """Raise ConfigError where a configuration of the user's own lacks a group, or has something else in its place."""
    groups = [field.name for field in fields(TrainConfig)]
    if missing := [group for group in groups if not isinstance(values.get(group), Mapping)]:
        raise ConfigError(
            f"the configuration lacks its groups {', '.join(missing)}: a file for --config-name begins with defaults: "
            "[train, _self_], and has the groups' settings below"
        )


def with_recipe(settings: Sequence[str], source: ConfigSource = CONFIGS) -> list[str]:
    """Return the settings, with experiment=sample where no corpus is named, also not by a file of the user's own.

    corpus.train, valid or test alone imply corpus=files, and with corpus.path corpus=hub. ConfigError for a model to go
    on from without text to go on with.
    """
    given = {parts(setting)[1] for setting in settings}
    if given & {"experiment", "corpus"} or source.primary:
        return list(settings)
    if given & {"corpus.train", "corpus.valid", "corpus.test", "corpus.path"} and "corpus.root" not in given:
        return ["corpus=hub" if "corpus.path" in given else "corpus=files", *settings]
    if "run.init_from" in given:
        raise ConfigError("run.init_from goes on with text: name it, with corpus=files corpus.train=... and so on")
    return ["experiment=sample", *settings]


def rerun_config(run: Path, overrides: Sequence[str]) -> TrainConfig:
    """Return the configuration of a finished run for another run, in run.dir or in the folder's name with -again.

    overrides: keys that shall have other values. CheckpointError when the run's own cannot be read.
    """
    overrides = in_full(load_plugins(overrides))
    values = saved_settings(run / "config.yaml")
    if not isinstance(values, Mapping) or not all(isinstance(values[key], Mapping) for key in {*values} - {"plugins"}):
        raise CheckpointError(f"{run / 'config.yaml'} does not describe a run")
    for key, value in lost_settings(values).items():
        say(f"note: {run} had {key}={value}; {removal_message(key, value)}")
    typed = {key: value_of(key, value) for key, value in plainly_typed("train", overrides)}
    if groups := [key for key in typed if "." not in key]:
        raise ConfigError(f"--rerun takes single settings, as in trainer.device=cpu, and '{groups[0]}' is a group")
    again = f"{run.resolve().name}-again"
    folder = {} if "run.name" in typed else {"run.dir": str(run.resolve().parent / again)}
    values = upgrade_config(values)
    for full_key, value in {"run.name": again, "run.dir": "", "run.override": False, **folder, **typed}.items():
        group, _, key = full_key.partition(".")
        values[group] = {**values.get(group, {}), key: value}
    values = _by_epochs(values, typed)
    config = rebuild({**values, "scheduler": _scheduler(values, typed)})
    cross_check(config)
    _check_warmup(config, typed)
    return config


def in_full(overrides: Sequence[str]) -> list[str]:
    """Return the settings with abbreviations written out: tracking=wandb is tracking.names=[wandb]."""
    return [_trackers(_SHORT.get(override, override)) for override in overrides]


def _trackers(override: str) -> str:
    """Write out `tracking=`, which takes trackers instead of a file of the group."""
    key, _, value = override.partition("=")
    if key != "tracking" or value == "default":
        return override
    return f"tracking.names={value if value[:1] == '[' else f'[{value}]'}"


def _settled(
    values: Mapping[str, Any], given: Collection[str], choices: Mapping[str, str], source: ConfigSource
) -> dict[str, Any]:
    """Return the values, where an experiment sets keys of a kind that the command line has replaced by another.

    Keys that the other kind does not have are left out; the others apply to it too. Both are reported, because a
    learning rate seldom suits two optimizers.

    given: the keys that the command line names. choices: the file chosen in each group.
    """
    kept = dict(values)
    named = [group for group in REGISTRIES if group in given]
    if choices["experiment"] == "None" or not named:
        return kept
    own_choices = compose([f"experiment={choices['experiment']}"], source).choices
    for group in named:
        if choices[group] == own_choices[group]:
            continue
        kind, own = f"{group}={choices[group]}", compose([f"{group}={choices[group]}"], source).values[group]
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


def evaluate_config(overrides: Sequence[str]) -> EvaluateConfig:
    """Return the configuration of mt-eval; source=FILE is short for files.source=FILE, and so on."""
    return EvaluateConfig(**build_groups(compose_plainly("evaluate", with_long_keys(load_plugins(overrides)))))


def _sized(config: TrainConfig, given: Collection[str]) -> TrainConfig:
    """Return the configuration with the width for model.parameters; ConfigError when model.d_model is set as well."""
    if not config.model.parameters or config.run.init_from:
        return config
    if "model.d_model" in given:
        raise ConfigError("model.parameters chooses model.d_model: set one of them")
    size, given_tokenizer = config.tokenizer.vocab_size, config.tokenizer.load_given()
    sizes = (given_tokenizer.source_size, given_tokenizer.target_size) if given_tokenizer else (size, size)
    return replace(config, model=config.model.sized(*sizes, config.tokenizer.shared))


def _without_idle_flow(config: TrainConfig, given: Collection[str]) -> TrainConfig:
    """Switch off an experiment's gradient flow for a model without recurrence."""
    if "trainer.gradient_flow" in given or config.model.SUPPORTS_GRADIENT_FLOW:
        return config
    return replace(config, trainer=replace(config.trainer, gradient_flow=False))


def _default_name(corpus: Mapping[str, Any], choices: Mapping[str, str]) -> str:
    experiment = choices["experiment"]
    if experiment != "None":
        return experiment.strip("[]").replace(",", "+").replace("/", "-")
    return f"{choices['corpus']}-{corpus['source']}-{corpus['target']}-{choices['model']}"


def _by_epochs(values: Mapping[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """Return the values, where trainer.epochs alone ends a training whose updates nobody typed, and its schedule."""
    trainer, scheduler = values.get("trainer"), values.get("scheduler")
    if not (isinstance(trainer, Mapping) and isinstance(scheduler, Mapping) and trainer.get("epochs")):
        return dict(values)
    is_default = "trainer.epochs" in typed or trainer.get("updates") == TrainerConfig.updates
    if "trainer.updates" not in typed and is_default:
        trainer = {**trainer, "updates": 0}
    if "scheduler.horizon" not in typed and "horizon" in scheduler:
        scheduler = {**scheduler, "horizon": 0}
    return {**values, "trainer": trainer, "scheduler": scheduler}


def _check_languages(config: TrainConfig, typed: Collection[str]) -> None:
    """Raise ConfigError for what is no language code, unless a run has begun with it, or it is inherited."""
    begun = begun_settings(config.run.folder).get("corpus")
    for side in ("source", "target"):
        key, code = f"corpus.{side}", getattr(config.corpus, side)
        inherits = config.run.init_from and key not in typed
        if not (inherits or (isinstance(begun, Mapping) and begun.get(side) == code)):
            check_code(key, code)


def _check_warmup(config: TrainConfig, typed: Collection[str]) -> None:
    """Raise ConfigError for a typed warm-up that is longer than the training; others fit, or are those of the run."""
    warmup, updates = config.scheduler.warmup, config.trainer.updates
    if {"scheduler.warmup", "scheduler.lr_init"} & {*typed} and 0 < updates < warmup:
        raise ConfigError(
            f"scheduler.warmup ({warmup}) is longer than the training (trainer.updates {updates}): the learning rate "
            f"would never reach its peak; type scheduler.warmup={updates // 10} (a tenth is usual), or leave it out"
        )


def _scheduler(values: Mapping[str, Any], typed: Collection[str], noted: bool = True) -> Any:
    """Return the schedule's settings; those that nobody typed as the run began with, or fitted into its updates.

    noted: whether a note says what was fitted.
    """
    scheduler, trainer, run = (values.get(group) for group in ("scheduler", "trainer", "run"))
    if not (isinstance(scheduler, Mapping) and isinstance(trainer, Mapping) and isinstance(run, Mapping)):
        return scheduler  # `build_groups` complains
    own = {key.removeprefix("scheduler.") for key in typed if key.startswith("scheduler.")}
    begun = begun_settings(_folder(run)).get("scheduler")
    if isinstance(begun, Mapping) and begun.get("name") == scheduler.get("name"):
        kept = {key: begun[key] for key in LENGTHS if key in begun and key not in own}
        if not (trainer.get("max_minutes") or trainer.get("epochs")) and kept.get("horizon") == 0:
            del kept["horizon"]  # what ended with epochs or minutes ends at an update now
        scheduler, own = {**scheduler, **kept}, own | kept.keys()
    fitted, changed = fit_schedule(scheduler, trainer.get("updates", TrainerConfig.updates), own)
    if changed and noted:
        what = ", ".join(f"scheduler.{key}={value} (not {scheduler[key]})" for key, value in changed.items())
        say(f"note: shortened to fit into the training: {what}; type a value to choose it yourself")
    return fitted


def _cleaning(values: Mapping[str, Any], typed: Collection[str]) -> Any:
    """Return the steps of cleaning; a run that keeps blanks, as older ones do, continues to keep them."""
    begun = begun_settings(_folder(values["run"])).get("cleaning")
    keeps = isinstance(begun, Mapping) and begun.get("blanks", "keep") == "keep" and "cleaning.blanks" not in typed
    return {**values["cleaning"], "blanks": "keep"} if keeps else values["cleaning"]


def _folder(run: Mapping[str, Any]) -> Path:
    """Return the run's folder; a mapping that RunConfig refuses is reported later."""
    try:
        return RunConfig(name=str(run.get("name")), dir=str(run.get("dir") or "")).folder
    except TolkaError:
        return Path()


def _notes(config: TrainConfig, given: Collection[str], experiment: str) -> Iterator[str]:
    """Yield notes on settings that are allowed but seldom intended. given: the keys that the command line names."""
    for key, lacking in config.settings_without_effect():
        if key in given:
            yield f"{key} has no effect without {lacking}"
    if config.run.init_from and experiment != "finetune" and "optimizer.lr" not in given:
        yield (
            f"the rate ({config.optimizer.lr:g}) is that of experiment={experiment}, which trains fresh weights; "
            "experiment=finetune, which run.init_from has by itself, goes on with a tenth of the usual rate"
        )
    longest, limit = config.batching.max_length + 1, config.model.longest
    if limit is not None and limit < longest:
        yield (
            f"the model has {limit} positions, and a sentence may have {longest} tokens, </s> included "
            "(batching.max_length): those beyond share the last one"
        )
