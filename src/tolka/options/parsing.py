"""Building a frozen dataclass from a mapping, as YAML gives it, with types and names checked."""

import dataclasses
import reprlib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from tolka.errors import ConfigError, in_one_line
from tolka.options.suggestions import did_you_mean

D = TypeVar("D")

MOST_INT = 2**62  # NumPy, torch and the system take 2**63 - 1, also of the next number
# The normal numbers of float32, to which torch converts a setting in the end: others become 0 or inf there.
LEAST_FLOAT, MOST_FLOAT = 2.0**-126, (2 - 2.0**-23) * 2.0**127
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxlong, _SHORT.maxother = 2, 200, 40, 80


def build(cls: type[D], values: Mapping[str, Any], where: str) -> D:
    """Build the dataclass from plain values; a single text stands for a list of one where a list is wanted.

    where: the group's name, which messages put before a key. ConfigError says which key, what it was, what is allowed.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} ({brief(values)}) must be a group of settings, as in {where}.key=value")
    # Not OmegaConf's structured configs: they convert texts to numbers and booleans, and read $ and ??? in a text.
    hints = typing.get_type_hints(cls)
    known = {field.name: hints[field.name] for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**converted(known, values, where))


def converted(known: Mapping[str, Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return plain values with the types that are known of their names; errors as `build`."""
    # In one message, so that a file with three mistakes is not read four times.
    complaints, left = list[str](), dict[str, Any]()
    for key, value in values.items():
        if key not in known:
            complaints.append(f"unknown key '{where}.{key}'.{did_you_mean(str(key), known, prefix=f'{where}.')}")
        elif not _fits(value, known[key]):
            complaints.append(f"{where}.{key} ({brief(value)}) must be {_in_words(known[key])}")
        else:
            left[key] = _convert(value, known[key])
    if complaints:
        raise ConfigError(in_one_line(complaints), complaints)
    return left


def _convert(value: Any, kind: Any) -> Any:
    """Return the value with the type of its field; text stays as it is."""
    if kind is float:  # from an int: 1 and 1.0 are one value of a setting
        return float(value)
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return [_convert(each, item) for each in (value if isinstance(value, list) else [value])]
    return value


def _fits(value: Any, kind: Any) -> bool:
    """Return whether the conversion keeps the meaning: no text for numbers, no numbers for booleans."""
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:  # True is an int in Python
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_INT
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and _in_float32(value)
    if kind in (str, types.NoneType):
        return isinstance(value, kind)
    if isinstance(kind, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(kind))
    if typing.get_origin(kind) is list:
        (item,) = typing.get_args(kind)
        return all(_fits(each, item) for each in (value if isinstance(value, list) else [value]))
    if typing.get_origin(kind) is dict:
        _, item = typing.get_args(kind)
        return isinstance(value, dict) and all(_fits(each, item) for each in value.values())
    return True


def _in_float32(value: float) -> bool:
    """Return whether a number is 0 or a normal float32."""
    return value == 0 or LEAST_FLOAT <= abs(value) <= MOST_FLOAT  # False for NaN


def brief(value: Any) -> str:
    """Return the value as Python writes it, shortened if long."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "a number of thousands of digits"


def _in_words(kind: Any) -> str:
    if kind in (list[str], str | list[str]):
        return "a text or a list of texts; put quotes around a value that YAML reads as something else"
    if typing.get_origin(kind) is list:
        return f"a list, each of it {_in_words(typing.get_args(kind)[0])}"
    names = {
        bool: "true or false",
        int: "a whole number, at most 2**62",
        float: f"a number from {LEAST_FLOAT:.3g} to {MOST_FLOAT:.3g}, or 0",
        str: "a text (--help says which ones are allowed; put quotes around no, on or 3)",
    }
    return names.get(kind, str(kind))
