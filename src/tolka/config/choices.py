"""What can be set: the files of configs/, the keys in them, and the presets of registered classes."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import yaml

from tolka.config.translate_schema import TRANSLATE_GROUPS, Groups
from tolka.options.settings import LiteralKind, literal_settings
from tolka.system.package_data import config_dir


def groups_of(group: str) -> Groups:
    """Return the table that has a group: of mt-translate's groups the one that needs no torch."""
    if group in TRANSLATE_GROUPS:
        return TRANSLATE_GROUPS
    # Imports torch, which takes 1.4 s, and which --help and mt-translate's settings can do without.
    from tolka.config.schemas import GROUPS

    return GROUPS


@functools.cache
def _literal_settings(group: str) -> dict[str, LiteralKind]:
    groups = groups_of(group)
    classes = groups.kinds(group) if group in groups else ()
    return {f"{group}.{name}": kind for cls in classes for name, kind in literal_settings(cls).items()}


def literal_kind(key: str) -> LiteralKind | None:
    """Return how the value of a key is taken as typed; None if it is read as Hydra reads values."""
    return _literal_settings(key.partition(".")[0]).get(key)


def choices_of(group: str) -> list[str]:
    """Return the choices of a config group: its YAML files, and presets of registered classes without one."""
    return sorted(_yaml_files(group) | set(presets_of_classes(group)))


@functools.cache
def _yaml_files(group: str) -> frozenset[str]:
    return frozenset(path.stem for path in (config_dir() / group).glob("*.yaml"))


def defaults_of(name: str) -> dict[str, str]:
    """Return the groups of configs/<name>.yaml, and which choice of each is the default."""
    entries = _read(config_dir() / f"{name}.yaml")["defaults"]
    return {group: str(kind) for entry in entries if isinstance(entry, dict) for group, kind in entry.items()}


def presets_of_classes(group: str) -> dict[str, dict[str, Any]]:
    """Return name -> options of a group's registered classes without a YAML file, such as plugins."""
    registry = None if group == "experiment" else groups_of(group).registries.get(group)
    if registry is None:
        return {}
    return {
        name: dataclasses.asdict(config)
        for name, config in registry.presets().items()
        if name not in _yaml_files(group)
    }


def known_keys(name: str) -> list[str]:
    """Return every group, and every key that a file of one of its groups has."""
    groups = set(defaults_of(name))
    kinds = [(group, kind) for group in groups - {"experiment"} for kind in choices_of(group)]
    return sorted(groups | {f"{group}.{key}" for group, kind in kinds for key in preset(group, kind)})


def preset(group: str, kind: str) -> dict[str, Any]:
    """Return the settings of one choice in a group."""
    if kind not in _yaml_files(group):
        return presets_of_classes(group)[kind]
    return {key: value for key, value in _read(config_dir() / group / f"{kind}.yaml").items() if key != "defaults"}


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
