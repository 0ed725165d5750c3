"""Composition of simple settings without Hydra, whose import and composition take longer than a line's translation.

It knows the part of Hydra's grammar that is beyond doubt: a group's file, and plain values of keys that the file has.
All else, mistakes included, is left to Hydra.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tolka.config.choices import literal_kind
from tolka.config.typed import parts
from tolka.system.package_data import config_dir

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,12})?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NOT_WORDS = {"null", "true", "false", "nan", "inf"}
_BOOLS = {"true": True, "false": False}
_PATH = re.compile(r"[\w./-]+")


class Plain(NamedTuple):
    """A composed configuration. values: of each group. choices: the file of each group."""

    values: dict[str, Any]
    choices: dict[str, str]


def plainly_composed(name: str, overrides: Sequence[str]) -> Plain | None:
    """Return what Hydra would compose of configs/<name>.yaml and the settings; None if that takes Hydra.

    name: translate or evaluate, whose files have neither interpolations nor defaults of their own.
    """
    defaults = _read(config_dir() / f"{name}.yaml")["defaults"]
    choices = {group: str(file) for entry in defaults if isinstance(entry, dict) for group, file in entry.items()}
    typed: dict[str, str] = {}
    for override in overrides:
        change, key, package, equals, value = parts(override)
        if change or package or not equals or not key or key in typed or not value:
            return None
        typed[key] = value
    for group in choices.keys() & typed.keys():
        if not (config_dir() / group / f"{typed[group]}.yaml").is_file() or not _WORD.fullmatch(typed[group]):
            return None
        choices[group] = typed.pop(group)
    values = {group: _read(config_dir() / group / f"{file}.yaml") for group, file in choices.items()}
    for full_key, text in typed.items():
        group, _, key = full_key.partition(".")
        if key not in values.get(group, {}) or (found := _value(full_key, text)) is None:
            return None
        values[group][key] = found
    return Plain(values, choices)


def _value(key: str, text: str) -> str | float | bool | None:
    """Return the value as Hydra reads it; None if that takes Hydra."""
    if kind := literal_kind(key):
        return text if not kind.is_list and _PATH.fullmatch(text) else None
    if text in _BOOLS:
        return _BOOLS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text if _WORD.fullmatch(text) and text.lower() not in _NOT_WORDS else None


def _read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return values
