"""From a mapping, as YAML gives it, to a frozen dataclass: types and names checked, nothing guessed."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from tolka.errors import ConfigError
from tolka.registry import did_you_mean

D = TypeVar("D")


def build(cls: type[D], values: Mapping[str, Any], where: str) -> D:
    """An instance of the dataclass; a single text is taken for a list of one where a list is wanted.

    where: the group's name, which messages put before a key. ConfigError says which key, what it was, what is allowed.
    """
    hints = typing.get_type_hints(cls)
    known = {field.name: hints[field.name] for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    unknown = [key for key in values if key not in known]
    if unknown:
        raise ConfigError(" ".join(f"unknown key '{where}.{key}'.{did_you_mean(str(key), known)}" for key in unknown))
    wrong = [
        f"{where}.{key} ({value!r}) must be {_in_words(known[key])}"
        for key, value in values.items()
        if not _fits(value, known[key])
    ]
    if wrong:
        raise ConfigError("; ".join(wrong))
    return cls(**{key: _converted(value, known[key]) for key, value in values.items()})


def _converted(value: Any, kind: Any) -> Any:
    """The value as its field has it. Text stays as it is, whatever `$` or `???` may mean elsewhere."""
    if kind is float:
        return float(value)
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return [_converted(each, item) for each in (value if isinstance(value, list) else [value])]
    return value


def _fits(value: Any, kind: Any) -> bool:
    """Whether the conversion keeps the meaning: no text for numbers, no numbers for truth values."""
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is str:
        return isinstance(value, str)
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return all(_fits(each, item) for each in (value if isinstance(value, list) else [value]))
    return True


def _in_words(kind: Any) -> str:
    if kind == list[str]:
        return "a text or a list of texts; put quotes around a value that YAML reads as something else"
    if typing.get_origin(kind) is list:
        return f"a list, each of it {_in_words(typing.get_args(kind)[0])}"
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text (--help says which ones are allowed; put quotes around no, on or 3)",
    }
    return names.get(kind, str(kind))
