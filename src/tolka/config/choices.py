"""What can be set: the files of configs/, the keys in them, and the presets of registered classes."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import yaml

from tolka.system.package_data import config_dir


@functools.cache
def literal_keys() -> dict[str, tuple[bool, bool]]:
    """Return the keys that `schemas.literal_keys` says are taken as typed."""
    from tolka.config import schemas  # imports torch, which --help does without

    return schemas.literal_keys()


def choices_of(group: str) -> list[str]:
    """Return what can be chosen in a config group: its YAML files, and presets of registered classes without one."""
    return sorted(_yaml_files(group) | set(presets_of_classes().get(group, ())))


@functools.cache
def _yaml_files(group: str) -> frozenset[str]:
    return frozenset(path.stem for path in (config_dir() / group).glob("*.yaml"))


def presets_of_classes() -> dict[str, dict[str, dict[str, Any]]]:
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
                keys |= {f"{group}.{key}" for key in options_of(group, kind)}
    return sorted(keys)


def options_of(group: str, kind: str) -> set[str]:
    """Return the keys of one file of a group."""
    if kind in (presets := presets_of_classes().get(group, {})):
        return set(presets[kind])
    return _keys_in_file(config_dir() / group / f"{kind}.yaml")


@functools.cache
def _keys_in_file(path: Path) -> set[str]:
    return {key for key in yaml.safe_load(path.read_text(encoding="utf-8")) if key != "defaults"}
