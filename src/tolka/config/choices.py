"""What can be set: the files of configs/, the keys in them, and the presets of registered classes."""

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tolka.config.translate_schema import TRANSLATE_GROUPS, Groups
from tolka.options.settings import literal_settings
from tolka.system.package_data import config_dir


class LiteralKind(NamedTuple):
    """How a value is taken as typed: whether it is a list, and whether any bytes will do."""

    is_list: bool
    any_bytes: bool


def _groups(group: str) -> Groups:
    """Return the table that has a group: of mt-translate's groups the one that needs no torch."""
    if group in TRANSLATE_GROUPS:
        return TRANSLATE_GROUPS
    from tolka.config.schemas import GROUPS  # imports torch, which --help and mt-translate do without

    return GROUPS


@functools.cache
def _literal_settings(group: str) -> dict[str, LiteralKind]:
    groups = _groups(group)
    return {
        f"{group}.{name}": LiteralKind(is_list, any_bytes)
        for cls in (groups.kinds(group) if group in groups else ())
        for name, is_list, any_bytes in literal_settings(cls)
    }


def literal_kind(key: str) -> LiteralKind | None:
    """Return how the value of a key is taken as typed; None if it is read as Hydra reads values."""
    return _literal_settings(key.partition(".")[0]).get(key)


def choices_of(group: str) -> list[str]:
    """Return what can be chosen in a config group: its YAML files, and presets of registered classes without one."""
    return sorted(_yaml_files(group) | set(presets_of_classes(group)))


@functools.cache
def _yaml_files(group: str) -> frozenset[str]:
    return frozenset(path.stem for path in (config_dir() / group).glob("*.yaml"))


def registries_of(name: str) -> list[str]:
    """Return the groups of configs/<name>.yaml whose choices are registered classes."""
    if name == "translate":
        return list(TRANSLATE_GROUPS.registries)
    from tolka.config.schemas import REGISTRIES  # imports torch, which mt-translate does without

    return list(REGISTRIES)


def presets_of_classes(group: str) -> dict[str, dict[str, Any]]:
    """Return name -> options of a group's registered classes without a YAML file, such as plugins."""
    registry = None if group == "experiment" else _groups(group).registries.get(group)
    if registry is None:
        return {}
    return {
        name: dataclasses.asdict(config)
        for name, config in registry.presets().items()
        if name not in _yaml_files(group)
    }


def known_keys(name: str) -> list[str]:
    """Return every group, and every key that a file of one of its groups has."""
    keys: set[str] = set()
    for entry in yaml.safe_load((config_dir() / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]:
        if isinstance(entry, dict):
            (group,) = entry
            keys.add(group)
            for kind in choices_of(group) if group != "experiment" else ():
                keys |= {f"{group}.{key}" for key in options_of(group, kind)}
    return sorted(keys)


def options_of(group: str, kind: str) -> set[str]:
    """Return the keys of one file of a group."""
    if kind in (presets := presets_of_classes(group)):
        return set(presets[kind])
    return _keys_in_file(config_dir() / group / f"{kind}.yaml")


@functools.cache
def _keys_in_file(path: Path) -> set[str]:
    return {key for key in yaml.safe_load(path.read_text(encoding="utf-8")) if key != "defaults"}
