"""Checks that config dataclasses run in `__post_init__`: each error names the key, its value and what is allowed."""

import re
from collections.abc import Iterable
from typing import Any

from tolka.errors import ConfigError
from tolka.options.registry import did_you_mean
from tolka.system.surrogates import is_utf8, printable

MOST_THREADS = 1024  # with more, OpenMP ends the process for want of memory


def at_least(config: Any, group: str, least: float, *keys: str) -> None:
    """Raise ConfigError unless each field is `least` or more."""
    for key in keys:
        value = getattr(config, key)
        if value < least:
            raise ConfigError(f"{group}.{key} ({value}) must be at least {least}")


def at_most(config: Any, group: str, most: float, *keys: str) -> None:
    """Raise ConfigError unless each field is `most` or less."""
    for key in keys:
        value = getattr(config, key)
        if value > most:
            raise ConfigError(f"{group}.{key} ({value}) must be at most {most}")


def zero_or_more(config: Any, group: str, zero_means: str, *keys: str) -> None:
    """Raise ConfigError unless each field is 0, which means `zero_means`, or more."""
    for key in keys:
        value = getattr(config, key)
        if value < 0:
            raise ConfigError(f"{group}.{key} ({value}) must be 0 ({zero_means}) or more")


def share_below_one(config: Any, group: str, *keys: str) -> None:
    """Raise ConfigError unless each field is at least 0 and below 1."""
    for key in keys:
        value = getattr(config, key)
        if not 0.0 <= value < 1.0:
            raise ConfigError(f"{group}.{key} ({value}) must be at least 0 and below 1")


def named_in_utf8(config: Any, group: str, *keys: str) -> None:
    """Raise ConfigError for a file name that is not UTF-8; Python reads such bytes as lone surrogates."""
    for key in keys:
        value = getattr(config, key)
        if not is_utf8(value):
            raise ConfigError(f"{group}.{key} ({printable(value)}) is not UTF-8: choose another name, or rename it")


def one_of(config: Any, group: str, key: str, allowed: Iterable[str]) -> None:
    """Raise ConfigError, with the nearest allowed word, unless the field is one of them."""
    value, allowed = getattr(config, key), list(allowed)
    if value not in allowed:
        raise ConfigError(f"{group}.{key} ('{value}') is unknown.{did_you_mean(value, allowed)}")


def check_licence(name: str, key: str) -> None:
    """Raise ConfigError for what cannot be the name of a licence on the Hugging Face Hub. "" is none."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*|", name):
        raise ConfigError(
            f"{key} ('{name}') is no name of a licence: these are in lower case, as in apache-2.0, cc-by-4.0 or other"
        )
