"""Properties of a setting beside its type and default, in the metadata of its dataclass field."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_LITERAL, _ANY_BYTES, _RESUMABLE, _NEEDS, LISTED = "literal", "any_bytes", "resumable", "needs", "listed"


def setting(
    default: Any = dataclasses.MISSING,
    *,
    default_factory: Any = dataclasses.MISSING,
    literal: bool = False,
    any_bytes: bool = False,
    resumable: bool | None = None,
    needs: tuple[str, str] | None = None,
    listed: bool = True,
) -> Any:
    """Declare a dataclass field that is a setting.

    literal: the value is a path, a name or a sentence, and is taken as typed: Hydra's grammar would split it at `=`,
    `(` and letters beyond ASCII, or read numbers and truth values into it.
    any_bytes: a file name that need not be UTF-8, because the file is only read.
    resumable: whether a resumed run may change it; by default as the class attribute `RESUMABLE` says, else no.
    needs: (attribute, words): without a true `attribute` of the whole configuration, as in "finetuning.lora_rank", the
    setting has no effect, and what it lacks is called `words`.
    listed: whether configs/ has it, so that it can be typed; others are only those of models that have them.
    """
    metadata = {_LITERAL: literal, _ANY_BYTES: any_bytes, _RESUMABLE: resumable, _NEEDS: needs, LISTED: listed}
    return dataclasses.field(default=default, default_factory=default_factory, metadata=metadata)


class LiteralKind(NamedTuple):
    """How a value is taken as typed: whether it is a list, and whether any bytes will do."""

    is_list: bool
    any_bytes: bool


def literal_settings(cls: type) -> dict[str, LiteralKind]:
    """Return the settings that are taken as typed, by their names."""
    return {
        field.name: LiteralKind(field.default_factory is not dataclasses.MISSING, bool(metadata.get(_ANY_BYTES)))
        for field, metadata in _settings(cls)
        if metadata.get(_LITERAL)
    }


def read_files(*configs: Any) -> list[str]:
    """Return the names of files that some groups of settings say to read."""
    values = [
        getattr(config, name)
        for config in configs
        for name, kind in literal_settings(type(config)).items()
        if kind.any_bytes
    ]
    return [name for value in values for name in (value if isinstance(value, list) else [value]) if name]


def is_resumable(cls: type, name: str) -> bool:
    """Return whether a resumed run may change the setting `name`, which need not be one of this class."""
    own = {field.name: metadata.get(_RESUMABLE) for field, metadata in _settings(cls)}.get(name)
    return bool(getattr(cls, "RESUMABLE", False) if own is None else own)


def needed_settings(cls: type) -> dict[str, tuple[str, str]]:
    """Return, for each setting that has no effect without another, the attribute needed and its words."""
    needs = {field.name: metadata.get(_NEEDS) for field, metadata in _settings(cls)}
    return {name: each for name, each in needs.items() if each is not None}


def _settings(cls: type) -> Iterator[tuple[dataclasses.Field[Any], Mapping[str, Any]]]:
    """Yield the fields with their metadata; a field that a subclass declares again keeps that of its base class."""
    # A subclass that only has another default, as in `dropout: float = 0.3`, writes it without `setting`.
    for field in dataclasses.fields(cls):
        fields = (base.__dict__.get("__dataclass_fields__", {}).get(field.name) for base in cls.__mro__)
        yield field, next((each.metadata for each in fields if each is not None and each.metadata), {})
