"""Hydra's part: command-line settings and the files of configs/ become plain values.

Nobody beyond this module sees a DictConfig, and nobody sees a traceback of Hydra's.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.config.choices import known_keys, literal_kind, presets_of_classes, registries_of
from tolka.config.explain import explain, plugin_keys, unknown_choice, unknown_key
from tolka.config.plain_compose import plainly_composed
from tolka.config.typed import parts, quote
from tolka.errors import ConfigError
from tolka.system.package_data import config_dir
from tolka.system.surrogates import is_utf8, printable

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

HYDRA_VERSION = "1.3"
"""Whose defaults hold, as hydra.main's version_base."""
# Hydra's own settings that have an effect in mt-train, and why others have none.
_HYDRA_SETTINGS = (
    *("hydra/launcher", "hydra/sweeper", "hydra.launcher.", "hydra.sweeper.", "hydra.searchpath", "hydra.mode"),
    *("hydra.job.env_set.", "hydra.job.env_copy", "hydra.job.name", "hydra.job.id", "hydra.job.config."),
)
_HYDRA_REFUSED = {
    "hydra.run.": "a run's folder is run.dir, or run.name below runs/",
    "hydra.sweep.": "the folder of several runs is run.dir, or run.name below runs/",
    "hydra.output_subdir": "config.yaml in a run's folder has its settings",
    "hydra.job.chdir": "paths are relative to the folder in which the command is typed",
    "hydra.callbacks": "plugins=[my_module] adds code of one's own",
    "hydra/callbacks": "plugins=[my_module] adds code of one's own",
    "hydra/job_logging": "the log is train.log in the run's folder",
    "hydra/hydra_logging": "the log is train.log in the run's folder",
    "hydra.verbose": "the log is train.log in the run's folder",
}

_NAMES = r"\[\s*(?!null\b)[A-Za-z][\w/.-]*(\s*,\s*(?!null\b)[A-Za-z][\w/.-]*)*\s*\]"
_LISTS_OF_NAMES = rf"{_NAMES}(,{_NAMES})*"  # several for -m


@dataclass(frozen=True)
class ConfigSource:
    """Where a configuration is composed from, beside configs/.

    folder: YAML files of the user's own (--config-dir), searched after configs/. primary: the file to begin with
    (--config-name); "" for the command's own.
    """

    folder: Path | None = None
    primary: str = ""

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise ConfigError(f"--config-dir: there is no folder {self.folder}")


CONFIGS = ConfigSource()
"""Nothing beside configs/."""


@dataclass(frozen=True)
class Composed:
    """What Hydra has composed of the files and the settings.

    values: of each group. choices: what was chosen in each group, as it is typed: a name, or [a,b]. mode: RUN or
    MULTIRUN. sweeper: Hydra's settings of it.
    """

    values: dict[str, Any]
    choices: dict[str, str]
    mode: str
    sweeper: dict[str, Any]


def compose(name: str, overrides: Sequence[str], source: ConfigSource = CONFIGS) -> Composed:
    """Compose a command's configuration with Hydra.

    name: train, translate or evaluate. overrides: in Hydra's grammar; the values of path keys as they are typed.
    Interpolations are resolved. ConfigError in one line.
    """
    _check_form(name, overrides)
    if name != "train" and source == CONFIGS and (plain := plainly_composed(name, overrides)):
        return Composed(plain.values, plain.choices, "RUN", {})

    import hydra
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        with _config_loader(source.folder, name):
            composed = hydra.compose(
                source.primary or name, [quote(override) for override in overrides], return_hydra_config=True
            )
        if name == "train":
            _check_classes(composed.hydra)
        choices = {str(k): str(v) for k, v in composed.hydra.runtime.choices.items() if "hydra/" not in str(k)}
        if name == "train" and "experiment" not in choices:  # Hydra notes neither a list nor what ~ removes
            typed = [value for change, key, _, _, value in map(parts, overrides) if key == "experiment" and not change]
            choices["experiment"] = (typed or ["None"])[-1].replace(" ", "")
        own = OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"])
        own._set_parent(composed)  # ${hydra:...} and ${now:...} are looked up from here
        values: Any = OmegaConf.to_container(own, resolve=True)
        mode = str(composed.hydra.mode or "RUN").rpartition(".")[2]
        sweeper: Any = OmegaConf.to_container(composed.hydra.sweeper)
    except (hydra.errors.HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ConfigError(explain(error, name, overrides)) from None
    return Composed(values, choices, mode, sweeper)


@contextmanager
def _config_loader(folder: Path | None, name: str = "train") -> Iterator[None]:
    """Let `hydra.compose` search configs/, and then `folder`; also inside a job that Hydra has started.

    name: as in `compose`; sweepers can be chosen for train alone.
    """
    from hydra import version
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.config_store import ConfigStore
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig  # noqa: F401  (registers Hydra's own config)

    version.setbase(HYDRA_VERSION)
    if name == "train":
        from tolka.config.optuna_sweeper import register as register_sweeper

        register_sweeper()
    for group in registries_of(name):
        for preset, options in presets_of_classes(group).items():
            ConfigStore.instance().store(name=preset, node=options, group=group)
    search_path = create_config_search_path(str(config_dir()))
    if folder is not None:  # where hydra.main puts it
        where = SearchPathQuery(provider="schema")
        search_path.prepend(provider="command-line", path=f"file://{folder.absolute()}", anchor=where)
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        Hydra.create_main_hydra2(task_name="tolka", config_search_path=search_path)
        yield
    finally:
        GlobalHydra.instance().hydra = outer


def _check_classes(hydra_config: Any) -> None:
    """Raise ConfigError where Hydra's own settings would run code that no installed plugin of Hydra's registered."""
    from hydra.core.plugins import Plugins
    from hydra.plugins.launcher import Launcher
    from hydra.plugins.sweeper import Sweeper

    if hydra_config.callbacks:
        raise ConfigError("hydra.callbacks would let a file choose which code runs; plugins=[my_module] adds one's own")
    for kind, plugin in (("sweeper", Sweeper), ("launcher", Launcher)):
        target = hydra_config[kind]._target_
        known = {f"{each.__module__}.{each.__qualname__}" for each in Plugins.instance().discover(plugin)}
        if target not in known:
            raise ConfigError(f"hydra.{kind}._target_ ({target}) is no {kind} that is installed: choose hydra/{kind}=")
        own = plugin_keys(kind).get(str(hydra_config.runtime.choices.get(f"hydra/{kind}")))
        if own and (added := [key for key in map(str, hydra_config[kind]) if key not in {*own, "_target_"}]):
            raise ConfigError(f"unknown key 'hydra.{kind}.{added[0]}'. Its keys: {', '.join(sorted(own))}")


def _check_form(name: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for what is no setting, for a group without a choice, and for settings without effect here."""
    known = known_keys(name)
    groups = {key for key in known if "." not in key}
    for override in overrides:
        change, key, package, equals, value = parts(override)
        kind = literal_kind(key)
        if not (kind and kind.any_bytes) and not is_utf8(override):
            raise ConfigError(f"'{printable(override)}' is not UTF-8: choose another name or text, or rename the file")
        if not key or not (equals or change == "~"):
            raise ConfigError(f"'{override}' is no setting; write key=value, as in {_example(known)}")
        if key in groups and change.startswith("+") and not package:
            raise ConfigError(f"{override}: there is a choice of {key} already; leave out the {change}")
        if change.startswith("+") and key.split(".")[0].split("/")[0] not in {*groups, "hydra"}:
            raise ConfigError(unknown_key(key, value, name))
        if key in groups and change == "~" and key != "experiment":
            raise ConfigError(f"{override} would leave out a group that is needed; its settings are {key}.key=value")
        if key in groups and not change and not package and not _may_choose(key, value):
            raise ConfigError(unknown_choice(key, value, name))
        if "_target_" in key:
            raise ConfigError(f"{key} would let a setting choose which code runs; plugins=[my_module] adds one's own")
        if key.split(".")[0].split("/")[0] == "hydra" and not (name == "train" and key.startswith(_HYDRA_SETTINGS)):
            reason = next((why for start, why in _HYDRA_REFUSED.items() if key.startswith(start)), "leave it out")
            raise ConfigError(f"{key} is Hydra's own setting, which has no effect here; {reason}")


def _may_choose(group: str, value: str) -> bool:
    """Return whether a value can be a choice in a group; whether it is one is Hydra's to say."""
    if group == "experiment" and value.startswith("["):
        return re.fullmatch(_LISTS_OF_NAMES, value) is not None
    return value != "null" and re.fullmatch(r"[A-Za-z].*", value) is not None


def _example(known: Sequence[str]) -> str:
    return "trainer.updates=1000" if "trainer" in known else "search.beam_size=5"


def parsed_overrides(settings: Sequence[str], source: ConfigSource = CONFIGS) -> "list[Override]":
    """Parse settings of mt-train, which may list several values; ConfigError for what cannot be read."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    _check_form("train", settings)
    with _config_loader(source.folder):
        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        try:
            return parser.parse_overrides([quote(setting) for setting in settings])
        except (HydraException, ValueError) as error:
            raise ConfigError(explain(error, "train", settings)) from None
