"""Settings as they are typed: split and read without Hydra, and Python values and paths in Hydra's grammar."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, NamedTuple, TypeVar, cast

from tolka.config.choices import literal_kind
from tolka.errors import ConfigError

_KEY = re.compile(r"(~|\+{0,2})([A-Za-z][\w./]*)")  # what a setting changes, and its key: ++trainer.ema, ~experiment
# A list's next item: in quotes, where commas do not separate, or a list without lists in it, or up to a comma.
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_LIST = rf"""\[(?:{_QUOTED}|[^][])*\]"""
_MAPPING = rf"""\{{(?:{_QUOTED}|{_LIST}|[^][{{}}])*\}}"""
_PAIR = re.compile(rf"""\s*([^:,\s]+)\s*:\s*({_QUOTED}|{_LIST}|[^,]*?)\s*(?:,|$)""")
_ITEM = re.compile(rf"""\s*({_QUOTED}|{_LIST}|{_MAPPING}|[^,]*?)\s*(?:,|$)""")

# The beginning of ${...} that is text: neither a setting nor a resolver. And backslashes before it, which escape it.
_TEXT = re.compile(r"(\\*)\$\{(?![\w.]+[:.][^{}]*\})")
# Values of several runs, for -m: choice(a,b) of paths, which a comma alone does not separate.
_SWEEP = re.compile(r"(?:choice|glob|shuffle|sort)\(.*\)\Z", re.DOTALL)

SEVERAL = "has several values where one is expected; decimals have a point, and a list is '[a,b]'"
_WORDS = {"null": None, "true": True, "false": False}

Settings = str | Sequence[str] | Mapping[str, Any]
"""Settings for a function of the library: one or several texts as they are typed, or a mapping."""
C = TypeVar("C")


class TypedSetting(NamedTuple):
    """A setting in its parts. change: "", +, ++ or ~. key: "" if it is invalid. equals: = or ""."""

    change: str
    key: str
    equals: str
    value: str


def split_setting(override: str) -> TypedSetting:
    """Split a setting as it is typed, such as ++trainer.ema=0.999, into its parts."""
    typed, equals, value = override.partition("=")
    change, key = form.groups() if (form := _KEY.fullmatch(typed)) else ("", "")
    return TypedSetting(change, key, equals, value)


def value_of(key: str, text: str) -> Any:
    """Return the value typed for a key, as Hydra reads it: a number, true, false, null, a list, or text.

    The value of a path key is text. ConfigError for what cannot be read.
    """
    kind = literal_kind(key)
    if text[:1] == "[" and text[-1:] == "]" and (kind is None or kind.is_list):
        return [value_of(key, item) for item in _items(text)]
    if _is_quoted(text):
        # As in Hydra's grammar, backslashes before a quote, or at the end, escape each other; others are text.
        return re.sub(rf"(\\+)({text[0]}|\Z)", lambda found: found[1][: len(found[1]) // 2] + found[2], text[1:-1])
    if kind is not None:
        return text
    if text[:1] in ("[", "{", "'", '"'):
        raise ConfigError(f"cannot read '{key}={text[:80]}': quotes and brackets come in pairs")
    # Seldom meant as text: a sweep (a,b), or a decimal comma.
    if "," in text:
        raise ConfigError(f"'{key}={text}' {SEVERAL}")
    if (word := text.strip().lower()) in _WORDS:
        return _WORDS[word]
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text.strip()


def quote_setting(override: str) -> str:
    """Quote the value of a path or name for Hydra, so that 'corpus.train=말뭉치/a=b(1)' works as it stands."""
    _, key, equals, value = split_setting(override)
    kind = literal_kind(key) if equals else None
    # choice(...) of paths lists several for -m; in quotes it would be one path.
    if kind is None or _SWEEP.match(value):
        return override
    typed = override.partition("=")[0]
    if kind.is_list and value.startswith("[") and value.endswith("]"):
        return f"{typed}={_quoted_list(value)}"
    return f"{typed}={quote_value(value)}"


def typed_settings(settings: object, keywords: Mapping[str, Any]) -> list[str]:
    """Return the settings that a function of the library was called with as they would be typed.

    settings: a text, several, or a mapping. TypeError, in one line, for anything else.
    """
    if isinstance(settings, Mapping):
        return as_overrides(settings) + as_overrides(keywords)
    given: Any = [settings] if isinstance(settings, str) else [] if settings is None else settings
    texts = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(each, str) for each in texts):
        raise TypeError(
            f"settings are a text ('model=lstm'), a list of texts, or a mapping, and not {settings!r:.80}; other "
            "arguments have names, as in model='runs/mine'"
        )
    # A text alone is likely a path, of a caller who took the first argument for the model.
    if isinstance(settings, str) and "=" not in settings and settings[:1] != "~":
        raise TypeError(
            f"'{settings}' is not a setting, as in 'model=lstm'; files and models have names, as in "
            "reference='test.de' and model='runs/mine'"
        )
    return [*texts, *as_overrides(keywords)]


def _items(text: str) -> list[str]:
    return [item for item in _ITEM.findall(text[1:-1]) if item]


def _quoted_list(value: str) -> str:
    return f"[{','.join(map(_quoted_item, _items(value)))}]"


def _quoted_item(item: str) -> str:
    if re.fullmatch(_LIST, item):
        return _quoted_list(item)
    # {text: data/train, source: en, target: ko}; only with a colon, since a name may be in braces.
    if re.fullmatch(_MAPPING, item) and ":" in item:
        return f"{{{','.join(f'{key}:{_quoted_item(value)}' for key, value in _PAIR.findall(item[1:-1]))}}}"
    return quote_value(item)


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] and text[0] in "'\""


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


def as_config(cls: type[C], make: Callable[[list[str]], C], config: C | Settings, settings: Mapping[str, Any]) -> C:
    """Return `config` if it is a configuration, else the one that `make` returns for these settings.

    TypeError for keyword settings beside a configuration, which has them all.
    """
    if not isinstance(config, cls):
        return make(typed_settings(cast(Settings, config), settings))
    if settings:
        raise TypeError("a configuration is complete: change it with dataclasses.replace, or give settings alone")
    return config


def _typed(key: str, value: Any) -> str:
    """Return a Python value in Hydra's grammar; NumPy's and torch's scalars and arrays are values as Python's."""
    # NumPy's float32 is a Real, and stays one: str(np.float32(0.1)) is 0.1, of its float 0.10000000149011612.
    if hasattr(value, "tolist") and not isinstance(value, Real):
        value = value.tolist()
    # Before Real: True is a number of Python's, and Hydra would read "True" as text.
    if value is None or isinstance(value, bool):
        return next(word for word, each in _WORDS.items() if each is value)
    if isinstance(value, Real):
        return str(value)
    if isinstance(value, list | tuple):
        kind = literal_kind(key if "." in key else f"files.{key}") if key else None
        if kind and not kind.is_list:
            raise TypeError(f"{key} is one name or path, and not a list: texts are read from the file that it names")
        return f"[{','.join(_typed('', each) for each in value)}]"
    if isinstance(value, Mapping) and not key:  # in a list
        return "{" + ",".join(f"{name}:{_typed('', each)}" for name, each in value.items()) + "}"
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{key} must be a text, a number, a path or a list of them, and not {type(value).__name__}")
    return str(value) if literal_kind(key) else quote_value(str(value))


def quote_value(value: str) -> str:
    """Return a text in quotes, as Hydra's grammar reads it; what is in quotes already stays as it is.

    ${...} in a path is an interpolation if it names a setting or a resolver, as in ${model.name} and ${now:%Y}, and
    text otherwise, since a file's name may have it.
    """
    if _is_quoted(value):
        return value
    text = _TEXT.sub(r"\1\1\\${", value)
    return "'" + re.sub(r"(\\*)('|\Z)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text) + "'"
