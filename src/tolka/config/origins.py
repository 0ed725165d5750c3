"""Who set each setting, and who may replace it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

OPEN = "open"
"""Stands for who set a setting that is only chosen when the training text is read."""


class Rank(IntEnum):
    """Kinds of origins, the weakest first."""

    DEFAULT = 0
    PRESET = 1
    """a file of one group, as of model=lstm"""
    EXPERIMENT = 2
    """a file about several groups: experiment=, --config-name, or the config.yaml of --rerun"""
    MODEL = 3
    """the model in run.init_from"""
    CHOSEN = 4
    """chosen from the training text"""
    BEGUN = 5
    """the run that goes on"""
    TYPED = 6


class Origin(NamedTuple):
    """Who set a setting. by: in a word or two, as in "model=lstm"."""

    rank: Rank
    by: str


DEFAULT, TYPED = Origin(Rank.DEFAULT, "default"), Origin(Rank.TYPED, "typed")


class ConfigFile(NamedTuple):
    """A file of settings that is composed. path: as in model/lstm. group: "" for one about several groups."""

    path: str
    group: str
    settings: Mapping[str, Any]

    def choices(self) -> Iterator[tuple[str, str]]:
        """Yield the groups in which a file about several groups chooses, and what: "override /model: lstm"."""
        entries = [] if self.group else self.settings.get("defaults", [])
        for key, choice in (pair for each in entries if isinstance(each, Mapping) for pair in each.items()):
            yield str(key).removeprefix("override").strip(" /"), str(choice)


@dataclass
class Composition:
    """The settings of all groups, and who set each.

    values: group -> key -> value, not checked yet. choices: what was chosen in each group, as it is typed: a name, or
    [a,b]. origins: of keys as in "model.d_model", and of the choices of groups; what is not there has its default.
    files: what was composed, the last one strongest. sweeper: Hydra's settings of it.
    """

    values: dict[str, Any]
    choices: dict[str, str]
    origins: dict[str, Origin] = field(default_factory=dict)
    files: Sequence[ConfigFile] = ()
    sweeper: dict[str, Any] = field(default_factory=dict)

    def rank(self, key: str) -> Rank:
        """Return the rank of who set a key, or the choice of a group."""
        return self.origins.get(key, DEFAULT).rank

    def preset(self, group: str) -> dict[str, Any]:
        """Return the settings that the chosen file of a group has by itself."""
        return {key: value for file in self.files if file.group == group for key, value in file.settings.items()}

    def typed(self) -> set[str]:
        """Return the keys and groups that were typed."""
        return {key for key, origin in self.origins.items() if origin.rank is Rank.TYPED}

    def get(self, key: str) -> Any:
        """Return the value of a key; None if it has none."""
        group, _, option = key.partition(".")
        return options.get(option) if isinstance(options := self.values.get(group), Mapping) else None

    def replace(self, key: str, value: Any, origin: Origin, weaker_than: Rank) -> bool:
        """Set a key unless who set it is at least as strong as `weaker_than`; return whether its value changed."""
        if self.rank(key) >= weaker_than:
            return False
        group, _, option = key.partition(".")
        before = self.values.get(group, {})
        self.values[group], self.origins[key] = {**before, option: value}, origin
        return option not in before or bool(before[option] != value)

    def named_origins(self) -> dict[str, str]:
        """Return who set each setting that has not its default, and what is open, as config.yaml has it.

        A group stands for its keys that have no entry of their own.
        """
        keys = {f"{group}.{key}" for group, options in self.values.items() for key in options}
        named = dict[str, str]()
        for key, (rank, by) in self.origins.items():
            group = key.partition(".")[0]
            if by == OPEN:
                named[key] = by
            elif key not in keys or rank is Rank.DEFAULT or by == DEFAULT.by:
                continue
            elif by.startswith(f"{group}="):
                named.setdefault(group, by)
            else:
                named[key] = by
        return named


def trace_origins(
    files: Sequence[ConfigFile], choices: Mapping[str, str], typed: Collection[str], is_implied: bool
) -> dict[str, Origin]:
    """Return who set each key and choice that has not its default.

    choices: as in Composition. typed: keys and groups. is_implied: whether the experiment is implied by other settings,
    so that it is as weak as a preset.
    """
    origins, several = dict[str, Origin](), Rank.PRESET if is_implied else Rank.EXPERIMENT
    defaults = dict(next((file.choices() for file in files if file.path == "train"), iter(())))
    for file in files:
        path, group, settings = file
        if group:
            rank = Rank.DEFAULT if choices.get(group) == defaults.get(group) else Rank.PRESET
            origin, parts = Origin(rank, f"{group}={choices.get(group)}"), {group: settings}
        elif path != "train":
            is_experiment = path.startswith("experiment/")
            origin = Origin(several, path.replace("/", "=", 1) if is_experiment else f"{path}.yaml")
            parts = {part: each for part, each in settings.items() if isinstance(each, Mapping)}
            origins |= {name: origin for name, _ in file.choices()}
        else:
            continue
        origins |= {f"{part}.{key}": origin for part, each in parts.items() for key in each}
    return {**origins, **dict.fromkeys(typed, TYPED)}
