"""Hydra's part: command-line settings and the files of configs/ become plain values.

Nobody beyond this module sees a DictConfig, and nobody sees a traceback of Hydra's.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import ConfigError
from tolka.model_directory.upgrade import GONE
from tolka.options.registry import did_you_mean, some_of
from tolka.system.package_data import config_dir
from tolka.system.surrogates import is_utf8, printable

# A list's next item: in quotes, where commas do not separate, or up to a comma.
_ITEM = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)""")


@functools.cache
def _literal_keys() -> dict[str, tuple[bool, bool]]:
    from tolka.config.schemas import literal_keys  # imports torch, which --help does without

    return literal_keys()


def compose(name: str, overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Compose configs/<name>.yaml with Hydra; return the values, and which file was chosen in each group."""
    import hydra
    from hydra.core.config_store import ConfigStore
    from hydra.core.hydra_config import HydraConfig  # noqa: F401  (registers Hydra's own config)
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    _check_form(name, overrides)
    quoted = [quote(override) for override in overrides]
    for group, presets in _presets().items():
        for preset, options in presets.items():
            ConfigStore.instance().store(name=preset, node=options, group=group)
    try:
        with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
            composed = hydra.compose(name, quoted, return_hydra_config=True)
        choices = {str(k): str(v) for k, v in composed.hydra.runtime.choices.items() if not str(k).startswith("hydra/")}
        plain = OmegaConf.to_container(OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"]))
    except (hydra.errors.HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(_explain(error, name, overrides)) from None
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}, choices


def _check_form(name: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for what Hydra would accept but no setting stands for: +key, ~key, hydra.*, group=5."""
    known = known_keys(name)
    groups = {key for key in known if "." not in key}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not _literal_keys().get(key, (False, False))[1] and not is_utf8(override):
            raise ConfigError(f"'{printable(override)}' is not UTF-8: choose another name or text, or rename the file")
        if not equals or not re.fullmatch(r"[A-Za-z][\w./]*", key):
            raise ConfigError(f"'{override}' is no setting; write key=value, as in {_example(known)}")
        if key in groups and (value == "null" or not re.fullmatch(r"[A-Za-z]\S*", value)):
            raise ConfigError(f"unknown {key} '{value}'.{did_you_mean(value, choices_of(key), _help(name))}")
        if key.split(".")[0].split("/")[0] == "hydra":
            raise ConfigError(f"{key} is Hydra's own setting, which has no effect here; leave it out")


def _example(known: Sequence[str]) -> str:
    return "trainer.updates=1000" if "trainer" in known else "search.beam_size=5"


def quote(override: str) -> str:
    """Quote the value of a path or name for Hydra, so that corpus.train=말뭉치/a=b(1) works as it stands."""
    key, equals, value = override.partition("=")
    if not equals or key not in _literal_keys():
        return override
    if _literal_keys()[key][0] and value.startswith("[") and value.endswith("]"):
        items = [item for item in _ITEM.findall(value[1:-1]) if item]
        return f"{key}=[{','.join(_quoted(item) for item in items)}]"
    return f"{key}={_quoted(value)}"


def as_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Return keyword arguments as typed settings: {"trainer": {"updates": 300}} is trainer.updates=300.

    A group's value is the name of its file, or a mapping of its keys (with `name` for the file).
    """
    typed = []
    for group, value in settings.items():
        if not isinstance(value, Mapping):
            typed.append(f"{group}={value}" if isinstance(value, str) else f"{group}={_typed(group, value)}")
            continue
        for key, each in value.items():
            names_file = key == "name" and group != "run"  # run.name is a setting
            typed.append(f"{group}={each}" if names_file else f"{group}.{key}={_typed(f'{group}.{key}', each)}")
    return typed


def _typed(key: str, value: Any) -> str:
    """Return a Python value in Hydra's grammar."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(_typed('', each) for each in value)}]"
    return str(value) if takes_a_path(key) else _quoted(str(value))


def takes_a_path(key: str) -> bool:
    """Return whether the key's value is a path or a name, taken as typed."""
    return key in _literal_keys()


def _quoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value
    # Backslashes count only before a quote in Hydra's grammar, and those at the end stand before the closing one.
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return "'" + escaped + "\\" * trailing + "'"


def _explain(error: Exception, name: str, overrides: Sequence[str]) -> str:
    """Return Hydra's complaint in one line, with the nearest thing that is allowed."""
    text = str(error)
    missing = re.search(r"Could not find '([\w-]+)/([^']*)'", text)
    if missing:
        group, wanted = missing.groups()
        return f"unknown {group} '{wanted}'.{did_you_mean(wanted, choices_of(group), _help(name))}"
    rejected = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if rejected:
        known = known_keys(name)
        key = rejected[1].split("@")[0]
        if key in known and "." in key:
            group, option = key.split(".", 1)
            kinds = [kind for kind in choices_of(group) if option in _options(group, kind)]
            return f"{key} is no key of the {group} that is chosen; those that have it: {group}={', '.join(kinds)}"
        if key in GONE:
            return f"{key} is gone; in its place: {GONE[key]}"
        return f"unknown key '{key}'.{_nearest(key, known, _help(name))}"
    for override in overrides:
        key, _, value = override.partition("=")
        if key not in _literal_keys() and re.search(r"\d{4300}", value):  # Python reads no longer ones
            return f"{key} ({value[:20]}..., {len(value)} characters) is a number too large to be read"
        if key not in _literal_keys() and re.fullmatch(r"[^\[{'\"]*,[^\]}]*", value):
            return f"'{override}' has several values where one is expected; decimals have a point, and a list is [a,b]"
        if not _parses(quote(override)):
            return f"cannot read '{override}'; a text with such characters needs quotes: \"{key}='{value}'\""
        if "${" in override and "}" not in override.partition("${")[2]:
            return f"cannot read '{override}': after '${{' a '}}' must follow; rename the file or the run"
    return "cannot read the settings: " + " ".join(text.split())


def _nearest(key: str, known: Sequence[str], all_of_them: str) -> str:
    """Return what may have been meant instead of a key: an option of its own group, or of that name in another one."""
    group, _, option = key.partition(".")
    own = [each for each in known if option and each.startswith(f"{group}.")]
    # By the options' own names, since the group's makes any two keys of it look alike.
    near = get_close_matches(option, [each.partition(".")[2] for each in own], n=3, cutoff=0.6)
    elsewhere = [each for each in known if option and each.endswith(f".{option}")]
    if meant := [f"{group}.{each}" for each in near] or elsewhere:
        return f" Did you mean '{meant[0]}'?" + (f" Or {' or '.join(meant[1:])}?" if meant[1:] else "")
    if own:
        return f" Keys of {group}: {some_of(own, all_of_them)}."
    hint, groups = did_you_mean(key, known), sorted({each.partition(".")[0] for each in known})
    return hint if "Did you mean" in hint else f" Groups: {some_of(groups, all_of_them)}."


def _help(name: str) -> str:
    """Return the command that lists every setting of configs/<name>.yaml."""
    return {"translate": "mt-translate --help", "evaluate": "mt-eval --help"}.get(name, "mt-train --help")


def _parses(override: str) -> bool:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(override)
    except (HydraException, ValueError):
        return False
    return True


def choices_of(group: str) -> list[str]:
    """Return what can be chosen in a config group: its YAML files, and presets of registered classes without one."""
    return sorted(_yaml_files(group) | set(_presets().get(group, ())))


@functools.cache
def _yaml_files(group: str) -> frozenset[str]:
    return frozenset(path.stem for path in (config_dir() / group).glob("*.yaml"))


def _presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Return group -> name -> options of registered classes without a YAML file, such as plugins."""
    from tolka.config.schemas import REGISTRIES  # imports torch, which --help does without

    return {
        group: {
            name: dataclasses.asdict(config)
            for name, config in registry.presets().items()
            if name not in _yaml_files(group)
        }
        for group, registry in REGISTRIES.items()
    }


def known_keys(name: str) -> list[str]:
    """Return every group, and every key that a file of one of its groups has."""
    keys: set[str] = set()
    for entry in yaml.safe_load((config_dir() / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]:
        if isinstance(entry, dict):
            (group,) = entry
            keys.add(group)
            for kind in choices_of(group) if group != "experiment" else ():
                keys |= {f"{group}.{key}" for key in _options(group, kind)}
    return sorted(keys)


def _options(group: str, kind: str) -> set[str]:
    """Return the keys of one file of a group."""
    if kind in (presets := _presets().get(group, {})):
        return set(presets[kind])
    return _keys_in_file(config_dir() / group / f"{kind}.yaml")


@functools.cache
def _keys_in_file(path: Path) -> set[str]:
    return {key for key in yaml.safe_load(path.read_text(encoding="utf-8")) if key != "defaults"}
