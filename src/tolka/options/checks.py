"""Checks that config dataclasses run in `__post_init__`: each error names the key, its value and what is allowed."""

from collections.abc import Callable, Iterable
from typing import Any

from tolka.errors import ConfigError
from tolka.options.registry import did_you_mean
from tolka.system.surrogates import is_utf8, printable

# https://huggingface.co/docs/hub/repositories-licenses
LICENCES = """
apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m
afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5
cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0
cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0
cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl
lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr mpl-2.0 odc-by odbl openmdw-1.0
openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr deepfloyd-if-license
fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 grok2-community gemma unknown
other
""".split()  # noqa: SIM905  (a list would take seventy lines)
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
    if name and name not in LICENCES:
        nearest = did_you_mean(name.lower().replace(" ", "-"), LICENCES).split(" Known:")[0]
        raise ConfigError(
            f"{key} ('{name}') is not a licence that the Hugging Face Hub knows, as apache-2.0 and cc-by-4.0 are; for "
            f"one that is not in its list, type other.{nearest}"
        )
