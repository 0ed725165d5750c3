"""The settings of a run that has begun, as config.yaml in its folder has them."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tolka.errors import CheckpointError, reason_of
from tolka.system.whole_files import read_text
from tolka.text.lines import near_path

SETTINGS = "config.yaml"


def has_begun(folder: Path) -> bool:
    """Return whether a folder has results of a run that could be lost."""
    return any((folder / name).exists() for name in ("best", "last", "metrics.jsonl"))


def begun_settings(folder: Path) -> Mapping[str, Any]:
    """Return the settings of the run that has begun in a folder; {} if there is none, or none can be read."""
    if not has_begun(folder) or not (folder / SETTINGS).is_file():
        return {}
    try:
        saved = saved_settings(folder / SETTINGS)
    # `RunFolder.claim` reports it.
    except CheckpointError:
        return {}
    return saved if isinstance(saved, Mapping) else {}


def saved_settings(saved: Path) -> Any:
    """Return the content of config.yaml, unchecked; CheckpointError when it cannot be read."""
    try:
        return yaml.safe_load(read_text(saved))
    except FileNotFoundError:
        raise CheckpointError(f"{saved}: there is no such file; a run's folder has one{near_path(saved)}") from None
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{saved} is damaged ({reason_of(error)}); choose another run.dir or run.name") from None


def differences(
    before: Any, after: Mapping[str, Any], may_change: Callable[[str], bool], then: str = "now"
) -> list[str]:
    """Return 'model.layers (3, now 4)' for each setting that differs and may not change on resume."""
    old, new = flat(before), flat(after)
    keys = sorted(key for key in old.keys() | new.keys() if not may_change(key))
    return [f"{key} ({old.get(key)!r}, {then} {new.get(key)!r})" for key in keys if old.get(key) != new.get(key)]


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one mapping, with keys as in "model.layers"."""
    if not isinstance(config, Mapping):
        return {prefix.removesuffix("."): config}
    return {key: value for name, part in config.items() for key, value in flat(part, f"{prefix}{name}.").items()}


def with_origins(config: Mapping[str, Any]) -> str:
    """Return a configuration as YAML, with who set each setting as a comment."""
    origins = config.get("run", {}).get("origins", {})
    lines = []
    for group, options in config.items():
        if not isinstance(options, Mapping):
            lines.append(_yaml({group: options}))
            continue
        lines.append(f"{group}:" if options else f"{group}: {{}}")
        of_group = origins.get(group, "default")
        for key, value in options.items():
            first, *others = _yaml({key: value}).split("\n")
            if (group, key) != ("run", "origins"):
                lines += [f"  {first}  # {origins.get(f'{group}.{key}', of_group)}", *(f"  {each}" for each in others)]
    return "\n".join(lines) + "\n"


def _yaml(values: Mapping[str, Any]) -> str:
    # Without a line break in a text, after which a comment would be text.
    return str(yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=math.inf)).rstrip("\n")
