"""From the settings typed on a command line to a configuration, with notes on what is seldom intended."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tolka.auto.memory import MEMORY
from tolka.auto.rules import FRESH, TUNED
from tolka.config.compose import CONFIGS, ConfigSource, compose, compose_plainly, plain_settings
from tolka.config.dependent_settings import follow_rules, leave_out_other_kinds
from tolka.config.inherited import inherit_model
from tolka.config.origins import DEFAULT, OPEN, TYPED, Composition, Origin, Rank
from tolka.config.plugins import load_plugins
from tolka.config.schemas import EvaluateConfig, TrainConfig, build_groups, rebuild
from tolka.config.translate_command import EVALUATE_KEYS, with_long_keys
from tolka.config.translate_command import translate_config as translate_config
from tolka.config.typed import Settings, split_setting, typed_settings, value_of
from tolka.errors import CheckpointError, ConfigError
from tolka.models.auto import AutoOptions
from tolka.system.progress import Say, silent
from tolka.text.lines import user_path
from tolka.text.scripts import check_code
from tolka.training.saved_settings import saved_settings

_ABBREVIATIONS = {
    # A switch of its own: an experiment's number of tokens still says how large an update is.
    "batching.tokens=auto": "batching.auto=true",
    "trainer.devices=auto": "trainer.devices=0",
}
# Names that belong to recipes alone, and what they are short for.
_OF_RECIPES = {"corpus.monolingual": "recipe.monolingual", "teacher": "recipe.teacher"}


def train_config(
    overrides: Settings = (), source: ConfigSource = CONFIGS, *, trains: bool = True, say: Say = silent, **settings: Any
) -> TrainConfig:
    """Return the configuration of mt-train; ConfigError in one line.

    overrides: as they are typed, or a mapping. source: YAML files of the user's own. trains: whether there are notes on
    the schedule. say: is given notes. settings: further ones as keywords, a mapping for a group.

        train_config(["model=lstm", "trainer.updates=300"])
        train_config(model="lstm", trainer={"updates": 300})
    """
    overrides = expand_abbreviations(load_plugins(typed_settings(overrides, settings), say))
    named = {split_setting(override).key for override in overrides}
    may_tune = "experiment" not in named and not source.primary
    # Frequent validation and an early end: old text is forgotten within a few hundred updates.
    implied = ["experiment=finetune"] if "run.init_from" in named and "experiment" not in named else []
    composed = compose(overrides, source, implied)
    check_groups(composed.values)
    if composed.choices["experiment"] != "None":
        leave_out_other_kinds(composed, say)
    if composed.get("run.init_from"):
        inherit_model(composed, say)
    # The name comes before the rules, which read the run's folder if it has begun.
    if not composed.get("run.name"):
        composed.values["run"]["name"] = _default_name(composed.values["corpus"], composed.choices)
    is_open = settings_to_choose(composed, may_tune)
    follow_rules(composed, say if trains and "scheduler.warmup" not in is_open else silent)
    composed.origins |= dict.fromkeys(is_open, Origin(Rank.CHOSEN, OPEN))
    composed.values["run"]["origins"] = composed.named_origins()
    config = TrainConfig(**build_groups(composed.values))
    typed = composed.typed()
    for side in ("source", "target"):
        # A model may have names of its own.
        if not config.run.init_from or f"corpus.{side}" in typed:
            check_code(f"corpus.{side}", getattr(config.corpus, side))
    if not is_open:  # else this follows when all settings are known
        config.check()
    if "trainer.updates" not in is_open:
        _check_warmup(composed)
    if config.model.parameters and not config.run.init_from:
        if "model.d_model" in typed:
            raise ConfigError("model.parameters chooses model.d_model: set one of them")
        config = config.sized()
    for note in config.notes(typed):
        say(f"note: {note}")
    return config


def check_groups(values: Mapping[str, Any]) -> None:
    """Raise ConfigError where a configuration of the user's own lacks a group, or has a value in its place."""
    groups = dict.fromkeys([*(field.name for field in fields(TrainConfig)), *values])
    if missing := [group for group in groups if not isinstance(values.get(group), Mapping)]:
        raise ConfigError(
            f"the configuration lacks its groups {', '.join(missing)}: a file for --config-name begins with defaults: "
            "[train, _self_], and has the groups' settings below"
        )


def with_recipe(settings: Sequence[str], source: ConfigSource = CONFIGS) -> list[str]:
    """Return the settings, with experiment=sample where no corpus is named, also not by a file of the user's own.

    A text of the user's own without a named model gets model=auto. corpus.train, valid or test alone imply
    corpus=files, and with corpus.path corpus=hub. ConfigError for a model to start from without text to train it on.
    """
    typed = {split_setting(setting).key for setting in settings}
    if "experiment" in typed or source.primary:
        return list(settings)
    model = [] if names_model(typed) else ["model=auto"]
    if "corpus" in typed:
        return [*(model if "corpus=sample" not in settings else []), *settings]
    # With corpus.root an experiment is meant, which names the files in that folder.
    if typed & {"corpus.train", "corpus.valid", "corpus.test", "corpus.path"} and "corpus.root" not in typed:
        return ["corpus=hub" if "corpus.path" in typed else "corpus=files", *model, *settings]
    if "run.init_from" in typed:
        raise ConfigError("run.init_from needs text to train on: name it, with corpus=files corpus.train=... and so on")
    return ["experiment=sample", *settings]


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
            return option in open_model and composed.get(key) != open_model[option]
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


def rerun_config(run: Path, overrides: Sequence[str], say: Say = silent) -> TrainConfig:
    """Return the configuration of a finished run for another run, in run.dir or in the folder's name with -again.

    overrides: keys that shall have other values. say: is given notes. CheckpointError when the run's own cannot be
    read.
    """
    # Not composed by Hydra, as text in a saved file would then be read as its grammar, and ${...} resolved.
    overrides = expand_abbreviations(load_plugins(overrides, say))
    values = saved_settings(run / "config.yaml")
    if not isinstance(values, Mapping) or not all(isinstance(values[key], Mapping) for key in {*values} - {"plugins"}):
        raise CheckpointError(f"{run / 'config.yaml'} does not describe a run")
    typed = {key: value_of(key, value) for key, value in plain_settings("train", overrides)}
    if groups := [key for key in typed if "." not in key]:
        raise ConfigError(f"--rerun takes single settings, as in trainer.device=cpu, and '{groups[0]}' is a group")
    again = f"{run.resolve().name}-again" if "run.dir" not in typed else user_path(typed["run.dir"]).resolve().name
    folder = {} if "run.name" in typed else {"run.dir": str(run.resolve().parent / again)}
    before = saved if isinstance(saved := values.get("run", {}).get("origins"), Mapping) else {}
    keys = [f"{group}.{key}" for group, own in values.items() if isinstance(own, Mapping) for key in own]
    origins = {key: Origin(Rank.EXPERIMENT, str(before.get(key, DEFAULT.by))) for key in keys}
    composed = Composition(dict(values), {}, origins)
    for key, value in {"run.name": again, "run.dir": "", "run.override": False, **folder, **typed}.items():
        composed.replace(key, value, TYPED if key in typed else DEFAULT, Rank.TYPED)
    follow_rules(composed, say)
    config = rebuild({**composed.values, "run": {**composed.values["run"], "origins": composed.named_origins()}})
    config.check()
    _check_warmup(composed)
    return config


def expand_abbreviations(overrides: Sequence[str]) -> list[str]:
    """Return the settings with abbreviations written out: tracking=wandb is 'tracking.names=[wandb]'."""
    written = (_ABBREVIATIONS.get(override, override) for override in overrides)
    return [re.sub(r"^tracking=(?!default$)\[?(.*?)\]?$", r"tracking.names=[\1]", each) for each in written]


def split_recipe(settings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the settings of a recipe, with short names written out, and those of its trainings."""
    of_recipe, others = list[str](), list[str]()
    for setting in settings:
        key = split_setting(setting).key
        full = _OF_RECIPES.get(key, key)
        is_own = full == "recipe" or full.startswith("recipe.")
        (of_recipe if is_own else others).append(setting.replace(key, full, 1) if is_own else setting)
    return of_recipe, others


def evaluate_config(overrides: Sequence[str], say: Say = silent) -> EvaluateConfig:
    """Return the configuration of mt-eval; source=FILE is short for files.source=FILE, and so on."""
    settings = with_long_keys(load_plugins(overrides, say), EVALUATE_KEYS)
    # Perplexities take torch in any case.
    return EvaluateConfig(**build_groups(compose_plainly("evaluate", ["decoding.backend=torch", *settings])))


def _default_name(corpus: Mapping[str, Any], choices: Mapping[str, str]) -> str:
    experiment = choices["experiment"]
    if experiment != "None":
        # Several are typed as [a,b], and one in a folder as dir/a: a run's name is one folder's.
        return experiment.strip("[]").replace(",", "+").replace("/", "-")
    train = corpus.get("train")
    # The first text may have languages of its own.
    own = train[0] if isinstance(train, list) and train and isinstance(train[0], Mapping) else {}
    source, target = (own.get(side, corpus[side]) for side in ("source", "target"))
    return f"{choices['corpus']}-{source}-{target}-{choices['model']}"


def _check_warmup(composed: Composition) -> None:
    """Raise ConfigError for a typed warm-up that is longer than the training; others are shortened."""
    warmup, updates = composed.get("scheduler.warmup"), composed.get("trainer.updates")
    is_typed = {"scheduler.warmup", "scheduler.lr_init"} & composed.typed()
    if is_typed and 0 < updates < warmup:
        raise ConfigError(
            f"scheduler.warmup ({warmup}) is longer than the training (trainer.updates {updates}): the learning rate "
            f"would never reach its peak; type scheduler.warmup={updates // 10} (a tenth is usual), or leave it out"
        )
