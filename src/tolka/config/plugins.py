"""Modules of the user's own, which register models, schedules, optimizers, searches, corpora, readers or metrics."""

import importlib
import os
import re
import sys
from collections.abc import Sequence

from tolka.errors import ConfigError
from tolka.system.progress import Say, silent

_KEY = "plugins"
_LOADED: dict[str, None] = {}  # in this process, in order


def load_plugins(settings: Sequence[str], say: Say = silent) -> list[str]:
    """Import the modules that `'plugins=[first,second]'` names, and return the other settings.

    Modules are looked for where Python does, by the commands then in the current folder. Only a command line names
    them: a saved configuration never chooses which code runs. say: is told where each was found. ConfigError for a
    module that is not there or cannot be imported.
    """
    others = []
    for text in settings:
        key, equals, value = text.partition("=")
        if key != _KEY or not equals:
            others.append(text)
            continue
        names = [name.strip() for name in value.strip().removeprefix("[").removesuffix("]").split(",")]
        for name in names:
            if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", name):
                raise ConfigError(f"plugins ({value}) must name Python modules, as in 'plugins=[my_model]'")
            _load(name, say)
    return others


def loaded_plugins() -> list[str]:
    """Return the modules that `load_plugins` has imported in this process."""
    return list(_LOADED)


def _load(name: str, say: Say) -> None:
    new = name not in sys.modules
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module itself or its package is missing; another name is a module that it imports.
        if error.name == name or (error.name and name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"plugins ({name}): there is no module {name}, installed or in {os.getcwd()}; write the name of "
                "my_model.py as 'plugins=[my_model]'"
            ) from None
        raise ConfigError(f"plugins ({name}): it needs the module {error.name}, which is not installed") from None
    except ConfigError:
        raise
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"plugins ({name}) cannot be imported: {words}") from error
    _LOADED[name] = None
    if new:
        say(f"plugin: {getattr(module, '__file__', None) or name}")
