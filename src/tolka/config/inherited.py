"""What fine-tuning inherits from the model that it starts from: sizes, tokenizer and languages."""

from collections.abc import Collection, Mapping
from typing import Any

import yaml

from tolka.config.compose import ConfigSource, compose
from tolka.errors import ConfigError
from tolka.formats.any_model import settings_of
from tolka.model_directory.names import models_of
from tolka.model_directory.read import direction_of
from tolka.model_directory.settings import find_model_folder, is_of_transformers
from tolka.model_directory.verify import MANIFEST, read_json
from tolka.models.options import TRAINING_ONLY, resolved_options
from tolka.system.package_data import config_dir
from tolka.system.progress import Say
from tolka.text.direction import is_named

# A run does not inherit these settings of the tokenizer: it adds subwords of its own, or none.
_EXTENSION_KEYS = ("extend", "extend_from")
# New subwords are learnt with these settings, whatever the old ones were learnt with.
_LEARNING_KEYS = ("sample", "character_coverage")


def with_model_settings(
    values: Mapping[str, Any], typed: Collection[str], choices: Mapping[str, str], source: ConfigSource, say: Say
) -> dict[str, Any]:
    """Fill in sizes, tokenizer and languages of the model in run.init_from where no others were requested.

    Requested is what the command line names (`typed`), and what an experiment sets to something else than the default.
    choices: the file chosen in each group. source: where they were composed from. say: is given notes.

    ConfigError, with the keys, when something was requested that the weights do not fit.
    """
    folder = str(values["run"]["init_from"])
    saved, defaults = settings_of(folder), compose([]).values
    merged, differing = _with_model_languages(values, typed, choices, source, say), dict[str, str]()
    for group in ("model", "tokenizer"):
        own = saved[group]
        if group == "tokenizer":
            own = {**own, **{key: defaults[group][key] for key in _EXTENSION_KEYS}}
        requested = {
            key: value
            for key, value in values[group].items()
            if group in typed or f"{group}.{key}" in typed or value != defaults[group].get(key)
        }
        merged[group] = {**own, **requested}
        now = merged[group]
        if group == "model":
            # With derived sizes written out, as d_ff from d_model, so that equal models compare as equal.
            own, now = (_resolved(sizes, bool(saved["tokenizer"]["shared"])) for sizes in (own, now))
        differing |= {
            f"{group}.{key}": f"({own.get(key)}, now {now.get(key)})"
            for key in requested
            if _unlisted(own.get(key)) != _unlisted(now.get(key)) and not _may_differ(group, key, now)
        }
    if differing:
        are_for_new_subwords = differing.keys() <= {f"tokenizer.{key}" for key in _LEARNING_KEYS}
        raise ConfigError(
            f"run.init_from ({folder}) has other sizes than were requested: "
            f"{', '.join(f'{key} {sizes}' for key, sizes in differing.items())}. "
            "Leave these settings out to continue with the model's own"
            + (", or set tokenizer.extend=N, which learns N more subwords by them" if are_for_new_subwords else "")
        )
    return merged


def with_tokenizer_of_teacher(values: Mapping[str, Any], typed: Collection[str]) -> dict[str, Any]:
    """Fill in the tokenizer of the model in trainer.teacher; ConfigError where another one is typed."""
    teacher = values["trainer"]["teacher"]
    if others := sorted(key for key in typed if key.split(".")[0] == "tokenizer"):
        raise ConfigError(f"{others[0]}: the subwords are those of trainer.teacher ({teacher}); leave it out")
    models = models_of(teacher)
    for model in models:
        if not is_of_transformers(model) and read_json(find_model_folder(model) / MANIFEST).get("weights") == "int8":
            raise ConfigError(f"{model} has its weights in int8, for translating only: name the model it was made from")
    return {**values, "tokenizer": settings_of(models[0])["tokenizer"]}


def _may_differ(group: str, key: str, now: Mapping[str, Any]) -> bool:
    """Return whether weights fit whatever a setting is. now: the settings of its group."""
    if group == "tokenizer":
        return key in _EXTENSION_KEYS or (bool(now.get("extend")) and key in _LEARNING_KEYS)
    return key.endswith(TRAINING_ONLY)


def _with_model_languages(
    values: Mapping[str, Any], typed: Collection[str], choices: Mapping[str, str], source: ConfigSource, say: Say
) -> dict[str, Any]:
    """Fill in the languages of the model in run.init_from that are not named, unless the corpus is the sample.

    typed: the keys that the command line names. choices: the file of each group.
    """
    named = set(typed)
    # In the experiments' files themselves: a composed value does not tell whether it is a default.
    for experiment in choices["experiment"].strip("[]").split(","):
        for folder in (config_dir(), source.folder):
            if folder and (path := folder / "experiment" / f"{experiment}.yaml").is_file():
                corpus = yaml.safe_load(path.read_text(encoding="utf-8")).get("corpus", {})
                named |= {f"corpus.{key}" for key in corpus}
                break
    if choices["corpus"] == "sample" or named >= {"corpus.source", "corpus.target"}:
        return dict(values)
    models = zip(("source", "target"), direction_of(settings_of(str(values["run"]["init_from"]))), strict=True)
    unnamed = {side: code for side, code in models if f"corpus.{side}" not in named}
    if unknown := [f"corpus.{side}" for side, code in unnamed.items() if not is_named(code)]:
        # Texts may name their own.
        if not all(isinstance(each, dict) and {"source", "target"} <= {*each} for each in values["corpus"]["train"]):
            raise ConfigError(
                f"run.init_from ({values['run']['init_from']}) translates between many languages: name those of this "
                f"text with {' and '.join(f'{key}=CODE' for key in unknown)}"
            )
        unnamed = {side: code for side, code in unnamed.items() if is_named(code)}
    if any(language != values["corpus"][side] for side, language in unnamed.items()):
        languages_set = " and ".join(f"corpus.{side}={language}" for side, language in unnamed.items())
        say(f"note: {languages_set}, as the model in run.init_from has {'them' if len(unnamed) > 1 else 'it'}")
    return {**values, "corpus": {**values["corpus"], **unnamed}}


def _unlisted(value: Any) -> Any:
    """Return the text of a list of one text; anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _resolved(sizes: Mapping[str, Any], shared: bool) -> Mapping[str, Any]:
    """Return a model's options with derived sizes written out; unchanged if they describe no possible model."""
    try:
        return resolved_options(sizes, shared)
    except ConfigError:  # reported when the settings are built
        return sizes
