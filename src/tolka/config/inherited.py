"""What fine-tuning inherits from the model that it starts from: sizes, tokenizer and languages."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tolka.config.origins import Composition, Origin, Rank
from tolka.errors import ConfigError
from tolka.formats.any_model import settings_of
from tolka.model_directory.settings import direction_of
from tolka.models.options import TRAINING_ONLY, resolved_options
from tolka.system.progress import Say
from tolka.text.direction import is_named

# New subwords are learnt with these settings, whatever the old ones were learnt with.
_LEARNING_KEYS = ("sample", "character_coverage")


def inherit_model(composed: Composition, say: Say) -> None:
    """Fill in sizes, tokenizer and languages of the model in run.init_from where no others are typed.

    say: is given notes, also on what an experiment sets and the weights do not fit. ConfigError, with the keys, when
    something is typed that they do not fit.
    """
    folder, typed = str(composed.get("run.init_from")), composed.typed()
    saved, origin, differing = settings_of(folder), Origin(Rank.MODEL, "run.init_from"), dict[str, str]()
    _inherit_languages(composed, saved, origin, say)
    for group in ("model", "tokenizer"):
        before: Mapping[str, Any] = composed.values[group]
        requested = [key for key in before if group in typed or f"{group}.{key}" in typed]
        of_experiment = {key for key in before if composed.rank(f"{group}.{key}") is Rank.EXPERIMENT}
        fitting = {key for key in of_experiment if _may_differ(group, key, before)} | {"extend"} & before.keys()
        kept = fitting.union(requested)
        own: Mapping[str, Any] = saved[group]
        now: Mapping[str, Any] = {**own, **{key: value for key, value in before.items() if key in kept}}
        composed.values[group] = now
        composed.origins |= {f"{group}.{key}": origin for key in own.keys() - kept}
        if group == "model":
            # With derived sizes written out, as d_ff from d_model, so that equal models compare as equal.
            own, now = (_resolve_sizes(sizes, bool(saved["tokenizer"]["shared"])) for sizes in (own, now))
        if lost := [
            f"{group}.{key}={before[key]}" for key in sorted(of_experiment - kept) if before[key] != own.get(key)
        ]:
            say(f"note: {', '.join(lost)} of the experiment is left out: the model in run.init_from has its own")
        differing |= {
            f"{group}.{key}": f"({own.get(key)}, now {now.get(key)})"
            for key in requested
            if _single_text(own.get(key)) != _single_text(now.get(key)) and not _may_differ(group, key, now)
        }
    if differing:
        raise ConfigError(
            f"run.init_from ({folder}) has other sizes than were requested: "
            f"{', '.join(f'{key} {sizes}' for key, sizes in differing.items())}. "
            "Leave these settings out to continue with the model's own"
        )


def _may_differ(group: str, key: str, now: Mapping[str, Any]) -> bool:
    """Return whether weights fit whatever a setting is. now: the settings of its group."""
    if group == "tokenizer":
        # A run adds subwords of its own, or none.
        return key == "extend" or (bool(now.get("extend")) and key in _LEARNING_KEYS)
    return key.endswith(TRAINING_ONLY)


def _inherit_languages(composed: Composition, saved: Mapping[str, Any], origin: Origin, say: Say) -> None:
    """Fill in the model's languages that are not named, unless the corpus is the sample.

    saved: the model's settings. origin: who sets them.
    """
    is_named_here = {side: composed.rank(f"corpus.{side}") >= Rank.EXPERIMENT for side in ("source", "target")}
    if composed.choices["corpus"] == "sample" or all(is_named_here.values()):
        return
    unnamed = {side: code for side, code in direction_of(saved)._asdict().items() if not is_named_here[side]}
    if unknown := [f"corpus.{side}" for side, code in unnamed.items() if not is_named(code)]:
        # Texts may name their own.
        if not all(isinstance(each, dict) and {"source", "target"} <= {*each} for each in composed.get("corpus.train")):
            raise ConfigError(
                f"run.init_from ({composed.get('run.init_from')}) translates between many languages: name those of "
                f"this text with {' and '.join(f'{key}=CODE' for key in unknown)}"
            )
        unnamed = {side: code for side, code in unnamed.items() if is_named(code)}
    changed = [composed.replace(f"corpus.{side}", code, origin, Rank.EXPERIMENT) for side, code in unnamed.items()]
    if any(changed):
        languages_set = " and ".join(f"corpus.{side}={language}" for side, language in unnamed.items())
        say(f"note: {languages_set}, as the model in run.init_from has {'them' if len(unnamed) > 1 else 'it'}")


def _single_text(value: Any) -> Any:
    """Return the text of a list of one text; anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _resolve_sizes(sizes: Mapping[str, Any], shared: bool) -> Mapping[str, Any]:
    """Return a model's options with derived sizes written out; unchanged if they describe no possible model."""
    try:
        return asdict(resolved_options(sizes, shared))
    except ConfigError:  # reported when the settings are built
        return sizes
