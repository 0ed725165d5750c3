"""Checks that config dataclasses run in `__post_init__`: each error names the key, its value and what is allowed."""

from collections.abc import Callable, Iterable
from typing import Any

from tolka.errors import ConfigError
from tolka.options.suggestions import did_you_mean, nearest
from tolka.system.package_data import table_beside
from tolka.system.surrogates import is_utf8, printable

MOST_THREADS = 1024  # or processes; with more, OpenMP ends the process for want of memory


def at_least(config: Any, group: str, least: float, *keys: str) -> None:
    """Raise ConfigError unless each field is `least` or more."""
    _refuse(config, group, keys, lambda value: value < least, f"at least {least}")


def at_most(config: Any, group: str, most: float, *keys: str) -> None:
    """Raise ConfigError unless each field is `most` or less."""
    _refuse(config, group, keys, lambda value: value > most, f"at most {most}")


def zero_or_more(config: Any, group: str, zero_means: str, *keys: str) -> None:
    """Raise ConfigError unless each field is 0, which means `zero_means`, or more."""
    _refuse(config, group, keys, lambda value: value < 0, f"0 ({zero_means}) or more")


def share_below_one(config: Any, group: str, *keys: str) -> None:
    """Raise ConfigError unless each field is at least 0 and below 1."""
    _refuse(config, group, keys, lambda value: not 0.0 <= value < 1.0, "at least 0 and below 1")


def _refuse(config: Any, group: str, keys: Iterable[str], is_wrong: Callable[[float], bool], allowed: str) -> None:
    for key in keys:
        if is_wrong(value := getattr(config, key)):
            raise ConfigError(f"{group}.{key} ({value}) must be {allowed}")


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
    """Raise ConfigError for a name that is not a licence's on the Hugging Face Hub; "" stands for no licence."""
    # The Hub refuses the model card of a model with any other name.
    if name and name not in (licences := table_beside(__file__)):
        hint = nearest(name.lower().replace(" ", "-"), licences)
        raise ConfigError(
            f"{key} ('{name}') is not a licence that the Hugging Face Hub knows, as apache-2.0 and cc-by-4.0 are; for "
            f"one that is not in its list, type other.{hint}"
        )
