"""Hydra's complaints in one line, with the nearest thing that is allowed."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from tolka.config.choices import choices_of, known_keys, literal_kind, preset
from tolka.config.foreign_names import meaning
from tolka.config.typed import SEVERAL, quote_setting, split_setting
from tolka.options.suggestions import did_you_mean, nearest, proposal, some_of

_LAUNCHERS = "joblib", "submitit_local", "submitit_slurm"  # of packages of their own
_OF_HYDRA = {"launcher": ("basic", *_LAUNCHERS), "sweeper": ("basic", "optuna")}


def explain(error: Exception, overrides: Sequence[str]) -> str:
    """Return Hydra's complaint about settings of mt-train in one line, with the nearest thing that is allowed."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    # By the wording of Hydra 1.3 and 1.4: its exceptions have no fields that name the key.
    text = " ".join(str(error).split()) or " ".join(str(error.__cause__).split())
    plugin = re.search(r"Could not find 'hydra/(\w+)/([^']*)'", text)
    if plugin:
        kind, wanted = plugin.groups()
        if wanted in _LAUNCHERS and kind == "launcher":
            package = f"hydra-{wanted.partition('_')[0]}-launcher"
            return f"hydra/launcher={wanted} needs {package}: pip install 'tolka[sweep]'"
        return f"unknown hydra/{kind} '{wanted}'.{did_you_mean(wanted, _OF_HYDRA.get(kind, ()))}"
    missing = re.search(r"Could not (?:find|load) '([\w-]+)/([^']*)'", text)
    if missing:
        group, wanted = missing.groups()
        return unknown_choice(group, wanted, "train")
    rejected = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if rejected:
        key = rejected[1]
        if key.startswith("hydra."):
            return f"unknown key '{key}'; Hydra's documentation of hydra/{key.split('.')[1]} has those that there are"
        value = next((each.value for each in map(split_setting, overrides) if each.key == key), "")
        return unknown_key(key, value, "train")
    if unresolved := re.search(r"Interpolation key '([^']*)' not found full_key: (\S+)", text):
        return f"{unresolved[2]} takes its value from '{unresolved[1]}', and there is no setting of that name"
    if "Could not append to config" in text:
        return f"{text.partition('. Either')[0]}: leave out the +"
    # What is left are errors of the grammar, which do not say in which of the settings they are.
    for override in overrides:
        _, key, _, value = split_setting(override)
        if literal_kind(key) is None and re.fullmatch(r"[^\[{'\"]*,[^\]}]*", value):
            return f"'{override}' {SEVERAL}"
        try:
            OverridesParser.create().parse_override(quote_setting(override))
        except (HydraException, ValueError):
            return f"cannot read '{override[:80]}'; a text with such characters needs quotes: \"{key}='{value[:80]}'\""
        if "${" in override and "}" not in override.partition("${")[2]:
            return f"cannot read '{override}': after '${{' a '}}' must follow; rename the file or the run"
    cause = str(error.__cause__ or "").partition("\n")[0]
    return f"cannot read the settings: {text}" + (f": {cause}" if cause and cause not in text else "")


def unknown_key(key: str, value: str, name: str) -> str:
    """Return the complaint about a key that is not there. name: of the command: train, translate, evaluate or serve."""
    group, _, option = key.partition(".")
    if option and key in known_keys(name):  # of another kind, as model.heads beside model=lstm
        kinds = [kind for kind in choices_of(group) if option in preset(group, kind)]
        return f"the chosen {group} has no key {key}; those that have it: {group}={', '.join(kinds)}"
    return f"unknown key '{key}'.{meaning(key, value, name) or _nearest(key, known_keys(name), help_command(name))}"


def unknown_choice(group: str, wanted: str, name: str) -> str:
    """Return the complaint about a choice that a group does not have. name: of the command, as in `unknown_key`."""
    elsewhere = meaning(group, wanted, name)
    return f"unknown {group} '{wanted}'.{elsewhere or did_you_mean(wanted, choices_of(group), help_command(name))}"


def _nearest(key: str, known: Sequence[str], all_of_them: str) -> str:
    """Return the options that a mistyped key may stand for: of its own group, or of that name in another one."""
    group, _, option = key.partition(".")
    own = [each for each in known if option and each.startswith(f"{group}.")]
    # By the options' own names, since the group's makes any two keys of it look alike.
    near = get_close_matches(option, [each.partition(".")[2] for each in own], n=3, cutoff=0.6)
    elsewhere = [each for each in known if option and each.endswith(f".{option}")]
    if meant := [f"{group}.{each}" for each in near] or elsewhere:
        return proposal(meant)
    if own:
        return f" Keys of {group}: {some_of(own, all_of_them)}."
    groups = sorted({each.partition(".")[0] for each in known})
    return nearest(key, known) or f" Groups: {some_of(groups, all_of_them)}."


def help_command(name: str) -> str:
    """Return the command that lists every setting of configs/<name>.yaml."""
    commands = {"translate": "mt-translate", "evaluate": "mt-eval", "serve": "mt-serve"}
    return f"{commands.get(name, 'mt-train')} --help"
