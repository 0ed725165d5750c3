"""Names that a config may use, each bound to the dataclass that holds its options."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from tolka.errors import ConfigError
from tolka.options.suggestions import did_you_mean


def refuse_abstract(cls: Any, what: str) -> None:
    """Raise ConfigError for a class that lacks a method of its kind, before anything is done with it."""
    if lacking := sorted(getattr(cls, "__abstractmethods__", ())):
        raise ConfigError(f"{what}: its class {cls.__name__} lacks {', '.join(lacking)}, as each of its kind has")


def plugins_of(values: Mapping[str, Any]) -> list[str]:
    """Return the modules that a saved configuration says its classes come from; they are not imported for that."""
    plugins = values.get("plugins")
    return [str(name) for name in plugins] if isinstance(plugins, list) else []


C = TypeVar("C")
T = TypeVar("T")


# Not `_target_` with a dotted path: a config is stored beside the weights, and the path would let a file choose which
# code runs. A name can only choose among registered classes.
class Registry(Generic[C]):
    """Registered name -> config class. Imports every module of its package before the first look-up.

    kind: what the names stand for ("model"), used in messages and as the config group's name.
    package: the module that registers them when imported, or the package whose modules do; a sub-package's `__init__`
    imports those that register anything. without: modules of it that register nothing, and are not imported.
    """

    def __init__(self, kind: str, package: str, without: Sequence[str] = ()) -> None:
        self.kind = kind
        self.package = package
        self._without = without
        self._classes: dict[str, type[C]] = {}
        self._filled = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Return a class decorator that makes the config class known under `name`."""

        def add(cls: type[T]) -> type[T]:
            if name in self._classes:
                raise ConfigError(f"the {self.kind} '{name}' is registered twice; choose another name")
            refuse_abstract(cls, f"the {self.kind} '{name}'")
            self._classes[name] = cls  # type: ignore[assignment]
            return cls

        return add

    def names(self) -> list[str]:
        """Return every registered name, sorted."""
        self._fill()
        return sorted(self._classes)

    def get(self, name: str, plugins: Sequence[str] = ()) -> type[C]:
        """Return the config class of `name`; ConfigError with the nearest name when there is none.

        plugins: modules that a saved configuration says its classes come from; the message names them.
        """
        self._fill()
        if name not in self._classes:
            if plugins:
                raise ConfigError(
                    f"the {self.kind} '{name}' is a plugin's: add 'plugins=[{','.join(plugins)}]' to the command"
                )
            raise ConfigError(f"unknown {self.kind} '{name}'.{did_you_mean(name, self._classes)}")
        return self._classes[name]

    def presets(self) -> dict[str, C]:
        """Return the choices of `<kind>=<name>`: the PRESETS beside each class, or its defaults under its own name."""
        self._fill()
        collected: dict[str, C] = {}
        for name, cls in self._classes.items():
            # One class may have several named sizes: transformer_tiny, transformer_base.
            collected |= getattr(sys.modules[cls.__module__], "PRESETS", None) or {name: cls()}
        return collected

    def _fill(self) -> None:
        if not self._filled:
            # Before the imports, during which a module may ask the registry for a name.
            self._filled = True
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
                if module.name not in self._without:
                    importlib.import_module(f"{self.package}.{module.name}")
