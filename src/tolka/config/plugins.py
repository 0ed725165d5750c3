"""Modules of the user's own, which register models, schedules, optimizers, searches, corpora, readers or metrics."""

import importlib
import os
import re
import sys
from collections.abc import Sequence

from tolka.errors import ConfigError
from tolka.system.progress import Say, silent

_KEY = "plugins"
LOADED: dict[str, None] = {}
"""The modules that `load_plugins` has imported in this process, in order."""


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


def _load(name: str, say: Say) -> None:
    new = name not in sys.modules
    try:
        module = importlib.import_module(name)
    except ConfigError:
        raise
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        where = f"{os.getcwd()} or where Python looks; my_model.py is 'plugins=[my_model]'"
        raise ConfigError(f"plugins ({name}) cannot be imported from {where}: {words}") from error
    LOADED[name] = None
    if new:
        say(f"plugin: {getattr(module, '__file__', None) or name}")
