"""What fine-tuning inherits from the model that it starts from: sizes, tokenizer and languages."""

from collections.abc import Collection, Mapping
from typing import Any

import yaml

from tolka.config.compose import ConfigSource, compose
from tolka.errors import ConfigError
from tolka.formats.any_model import settings_of
from tolka.model_directory.read import direction_of
from tolka.models.options import TRAINING_ONLY, resolved_options
from tolka.system.package_data import config_dir
from tolka.system.progress import say

_OF_AN_EXTENSION = ("extend", "extend_from")
"""Settings of the tokenizer that a run does not inherit: it adds subwords of its own, or none."""
_LEARNING = ("sample", "character_coverage")
"""Settings that new subwords are learnt with, whatever the old ones were learnt with."""


def inherited(
    values: Mapping[str, Any], given: Collection[str], choices: Mapping[str, str], source: ConfigSource
) -> dict[str, Any]:
    """Fill in sizes, tokenizer and languages of the model in run.init_from where no others were requested.

    Requested is what the command line names (`given`), and what an experiment sets to something else than the default.
    choices: the file chosen in each group. source: where they were composed from.

    ConfigError, with the keys, when something was requested that the weights do not fit.
    """
    folder = str(values["run"]["init_from"])
    saved, defaults = settings_of(folder), compose([]).values
    taken, differing = _with_the_models_languages(values, given, choices, source), []
    for group in ("model", "tokenizer"):
        own = saved[group]
        if group == "tokenizer":
            own = {**own, **{key: defaults[group][key] for key in _OF_AN_EXTENSION}}
        asked = {
            key: value
            for key, value in values[group].items()
            if group in given or f"{group}.{key}" in given or value != defaults[group].get(key)
        }
        taken[group] = {**own, **asked}
        now = taken[group]
        if group == "model":
            own, now = (_resolved(sizes, bool(saved["tokenizer"]["shared"])) for sizes in (own, now))
        differing += [
            f"{group}.{key} ({own.get(key)}, now {now.get(key)})"
            for key in asked
            if _listed(own.get(key)) != _listed(now.get(key)) and not _may_differ(group, key, now)
        ]
    if differing:
        raise ConfigError(
            f"run.init_from ({folder}) has other sizes than were asked for: {', '.join(differing)}. "
            "Leave these settings out to go on with the model's own"
        )
    return taken


def _may_differ(group: str, key: str, now: Mapping[str, Any]) -> bool:
    """Return whether weights fit whatever a setting is. now: the settings of its group."""
    if group == "tokenizer":
        return key in _OF_AN_EXTENSION or (bool(now.get("extend")) and key in _LEARNING)
    return key.endswith(TRAINING_ONLY)


def _with_the_models_languages(
    values: Mapping[str, Any], given: Collection[str], choices: Mapping[str, str], source: ConfigSource
) -> dict[str, Any]:
    """Fill in the languages of the model in run.init_from that are not named, unless the corpus is the sample.

    given: the keys that the command line names. choices: the file of each group.
    """
    asked = set(given)
    for experiment in choices["experiment"].strip("[]").split(","):
        for folder in (config_dir(), source.folder):
            if folder and (path := folder / "experiment" / f"{experiment}.yaml").is_file():
                named = yaml.safe_load(path.read_text(encoding="utf-8")).get("corpus", {})
                asked |= {f"corpus.{key}" for key in named}
                break
    if choices["corpus"] == "sample" or asked >= {"corpus.source", "corpus.target"}:
        return dict(values)
    models = zip(("source", "target"), direction_of(settings_of(str(values["run"]["init_from"]))), strict=True)
    unnamed = {side: language for side, language in models if f"corpus.{side}" not in asked}
    if any(language != values["corpus"][side] for side, language in unnamed.items()):
        languages_set = " and ".join(f"corpus.{side}={language}" for side, language in unnamed.items())
        say(f"note: {languages_set}, as the model in run.init_from has {'them' if len(unnamed) > 1 else 'it'}")
    return {**values, "corpus": {**values["corpus"], **unnamed}}


def _listed(value: Any) -> Any:
    """Return the text of a list of one text; anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _resolved(sizes: Mapping[str, Any], shared: bool) -> Mapping[str, Any]:
    """A model's options so that equal sizes look equal; as they are where they make no model."""
    try:
        return resolved_options(sizes, shared)
    except ConfigError:
        return sizes
