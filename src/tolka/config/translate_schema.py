"""What the groups of the configurations of mt-translate and mt-serve are built from; needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError, TolkaError, in_one_line
from tolka.jobs.options import InputConfig, OutputConfig
from tolka.options.parsing import brief, build
from tolka.options.registry import Registry
from tolka.options.suggestions import did_you_mean
from tolka.search.options import SEARCHES
from tolka.serve.options import LimitsConfig


@dataclass(frozen=True)
class Groups:
    """What groups of settings are built from: a registry where the class depends on the key `name`, else one class."""

    registries: Mapping[str, Registry[Any]]
    classes: Mapping[str, type]

    def __contains__(self, group: object) -> bool:
        """Return whether a group is among them."""
        return group in self.registries or group in self.classes

    def kinds(self, group: str) -> list[type]:
        """Return every class that a group may be built from."""
        registry = self.registries.get(group)
        return [registry.get(name) for name in registry.names()] if registry else [self.classes[group]]

    def build(self, values: Mapping[str, Any], plugins: Sequence[str] = ()) -> dict[str, Any]:
        """Build each group's dataclass; the complaints of all are raised together. plugins: see `Registry.get`."""
        groups: dict[str, Any] = {}
        complaints = []
        for group, options in values.items():
            try:
                if group not in self:
                    known = [*self.registries, *self.classes]
                    raise ConfigError(f"unknown group '{group}'.{did_you_mean(str(group), known)}")
                if not isinstance(options, Mapping):
                    raise ConfigError(
                        f"{group} ({brief(options)}) must be a group of settings, as in {group}.key=value"
                    )
                registry = self.registries.get(group)
                cls = registry.get(str(options.get("name")), plugins) if registry else self.classes[group]
                groups[group] = build(cls, options, group)
            except ConfigError as error:
                complaints += error.complaints
            except TolkaError as error:
                complaints.append(str(error))
        if complaints:
            raise ConfigError(in_one_line(complaints), complaints)
        return groups


TRANSLATE_GROUPS = Groups(
    {"search": SEARCHES},
    {"decoding": DecodingConfig, "input": InputConfig, "output": OutputConfig, "limits": LimitsConfig},
)
