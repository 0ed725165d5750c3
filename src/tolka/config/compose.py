"""Compose command-line settings and the files of configs/ into plain values: by Hydra for mt-train.

Nobody beyond this module sees a DictConfig, and nobody sees a traceback of Hydra's.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.config.choices import choices_of, defaults_of, literal_kind, preset, presets_of_classes
from tolka.config.explain import explain, unknown_choice, unknown_key
from tolka.config.origins import Composition, ConfigFile, trace_origins
from tolka.config.typed import TypedSetting, quote_setting, split_setting, value_of
from tolka.errors import ConfigError
from tolka.system.package_data import config_dir
from tolka.system.surrogates import is_utf8, printable

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from hydra.core.override_parser.types import Override

# Hydra's own settings that have an effect in mt-train, and what takes the place of others.
_HYDRA_SETTINGS = ("hydra/launcher", "hydra/sweeper", "hydra.launcher.", "hydra.sweeper.")
_HYDRA_REFUSED = (
    "a run's folder is run.dir, with its settings and train.log; --config-dir names YAML files of your own, NAME=value "
    "before the command sets a variable, and 'plugins=[my_module]' adds code"
)

_NAME = r"(?!null\b)[A-Za-z][\w/.-]*"  # of a choice in a group; of experiments there can be several


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


def compose_plainly(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of each group that settings without Hydra's grammar describe; ConfigError in one line.

    name: translate or evaluate, whose files have neither interpolations nor defaults of their own.
    """
    # Without Hydra, whose import takes longer than the translation of a line.
    choices, typed = defaults_of(name), plain_settings(name, overrides)
    # The choices of all groups first, as in Hydra: search=beam may be typed after search.beam_size=3.
    for key, value in typed:
        if key in choices and value not in choices_of(key):
            raise ConfigError(unknown_choice(key, value, name))
        if key in choices:
            choices[key] = value
    values = {group: preset(group, kind) for group, kind in choices.items() if kind in choices_of(group)}
    for key, value in typed:
        group, _, option = key.partition(".")
        if key not in choices and option not in values.get(group, {}):
            raise ConfigError(unknown_key(key, value, name))
        if option:
            values[group][option] = value_of(key, value)
    return values


def compose(overrides: Sequence[str], source: ConfigSource = CONFIGS, implied: Sequence[str] = ()) -> Composition:
    """Compose the configuration of mt-train with Hydra.

    overrides: in Hydra's grammar; the values of path keys as they are typed. Interpolations are resolved. implied:
    choices that others imply, whose files are as weak as presets. ConfigError in one line, for the first fault.
    """
    import hydra
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    groups = defaults_of("train")
    for override in overrides:
        change, key, _, value = _check_setting("train", override)
        name = rf"{_NAME}|\[{_NAME}(\s*,\s*{_NAME})*\]" if key == "experiment" else _NAME
        if change.startswith("+") and re.split("[./]", key)[0] not in groups:
            raise ConfigError(unknown_key(key, value, "train"))
        if key in groups and not change and not re.fullmatch(name, value):
            raise ConfigError(unknown_choice(key, value, "train"))
    try:
        with hydra_of(source) as own_hydra:
            quoted = [quote_setting(override) for override in (*implied, *overrides)]
            composed = hydra.compose(source.primary or "train", quoted, return_hydra_config=True)
            files = list(_composed_files(own_hydra.config_loader, source.primary or "train", quoted))
        _check_hydra(composed.hydra)
        choices = {str(k): str(v) for k, v in composed.hydra.runtime.choices.items() if "hydra/" not in str(k)}
        if "experiment" not in choices:  # Hydra notes neither a list nor what ~ removes
            settings = map(split_setting, overrides)
            named = [each.value for each in settings if each.key == "experiment" and not each.change]
            choices["experiment"] = (named or ["None"])[-1].replace(" ", "")
        own = OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"])
        own._set_parent(composed)  # ${hydra:...} and ${now:...} are looked up from here
        values: Any = OmegaConf.to_container(own, resolve=True)
        sweeper: Any = OmegaConf.to_container(composed.hydra.sweeper)
    except (hydra.errors.HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ConfigError(explain(error, overrides)) from None
    typed = {split_setting(override).key for override in overrides}
    return Composition(values, choices, trace_origins(files, choices, typed, bool(implied)), files, sweeper)


def _composed_files(loader: Any, primary: str, quoted: list[str]) -> Iterator[ConfigFile]:
    """Yield each file that Hydra merges, the last one strongest."""
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    for default in loader.compute_defaults_list(primary, quoted, RunMode.RUN).defaults:
        path = str(default.config_path)
        if not path.startswith("hydra/"):
            found = next((each for each in loader.get_sources() if each.is_config(path)), None)
            if found is None:
                raise ConfigError(f"{path} is not in configs/ or --config-dir, and hydra.searchpath has no effect here")
            settings: Any = OmegaConf.to_container(found.load_config(path).config, resolve=False)
            yield ConfigFile(path, default.package or "", settings)


@contextmanager
def hydra_of(source: ConfigSource) -> "Iterator[Hydra]":
    """Let Hydra search configs/, and then the folder of `source`; also inside a job that Hydra has started."""
    # Not hydra.initialize_config_dir, which fails inside a job, and searches one folder.
    from hydra import __version__, version
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.config_store import ConfigStore
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig  # noqa: F401  (registers Hydra's own config)

    from tolka.config.optuna_search import OPTUNA, OptunaConfig
    from tolka.config.schemas import REGISTRIES

    if __version__.startswith("1.3."):  # Hydra 1.4 has no such choice
        version.setbase("1.3")
    store = ConfigStore.instance()
    store.store(name="optuna", node={"_target_": OPTUNA, **asdict(OptunaConfig())}, group="hydra/sweeper")
    for group in REGISTRIES:
        for kind, options in presets_of_classes(group).items():
            store.store(name=kind, node=options, group=group)
    search_path = create_config_search_path(str(config_dir()))
    if source.folder is not None:
        # Where hydra.main puts it.
        where = SearchPathQuery(provider="schema")
        search_path.prepend(provider="command-line", path=f"file://{source.folder.absolute()}", anchor=where)
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield Hydra.create_main_hydra2(task_name="tolka", config_search_path=search_path)
    finally:
        GlobalHydra.instance().hydra = outer


def _check_hydra(hydra_config: Any) -> None:
    """Raise ConfigError for settings of Hydra's own that would have no effect, or run code of one's own."""
    from hydra.core.plugins import Plugins

    from tolka.config.optuna_search import SWEEPERS

    if hydra_config.callbacks:
        raise ConfigError("hydra.callbacks would let a file choose which code runs: 'plugins=[my_module]' adds yours")
    if hydra_config.job.env_set:
        raise ConfigError("hydra.job.env_set has no effect here: set a variable before the command, as in NAME=value")
    for kind, known in (("sweeper", SWEEPERS), ("launcher", Plugins.instance().class_name_to_class)):
        if (target := hydra_config[kind]._target_) not in known:
            raise ConfigError(f"hydra.{kind}._target_ ({target}) is not an installed {kind}: choose hydra/{kind}=")


def plain_settings(name: str, overrides: Sequence[str]) -> list[tuple[str, str]]:
    """Return the keys and values of settings that may be key=value alone; ConfigError for others."""
    typed = []
    for override in overrides:
        change, key, _, value = _check_setting(name, override)
        if change:
            raise ConfigError(f"{override}: settings are key=value here, without {change}")
        typed.append((key, value))
    return typed


def _check_setting(name: str, override: str) -> TypedSetting:
    """Return the parts of a setting; ConfigError for what cannot be a setting of the command `name`."""
    change, key, equals, value = split = split_setting(override)
    kind = literal_kind(key)
    if not (kind and kind.any_bytes) and not is_utf8(override):
        raise ConfigError(f"'{printable(override)}' is not UTF-8: choose another name or text, or rename the file")
    if not key or not (equals or change == "~"):
        example = "trainer.updates=1000" if name == "train" else "search.beam_size=5"
        raise ConfigError(f"'{override}' is not a setting; write key=value, as in {example}")
    if kind is None and re.fullmatch(r"[^'\"(\[{]*\s[\w.@/]+=.*", value):
        raise ConfigError(
            f"'{override}' has several settings: each is a text of its own, without quotes around them all"
        )
    if "_target_" in key:
        raise ConfigError(f"{key} would let a setting choose which code runs; 'plugins=[my_module]' adds one's own")
    if re.match(r"hydra\b", key) and (name != "train" or change or not key.startswith(_HYDRA_SETTINGS)):
        raise ConfigError(f"{key} is Hydra's own setting, which has no effect here: {_HYDRA_REFUSED}")
    return split


def parsed_overrides(settings: Sequence[str], source: ConfigSource = CONFIGS) -> "list[Override]":
    """Parse settings of mt-train, which may list several values; ConfigError for what cannot be read."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    for setting in settings:
        _check_setting("train", setting)
    with hydra_of(source) as hydra:
        parser = OverridesParser.create(config_loader=hydra.config_loader)
        try:
            return parser.parse_overrides([quote_setting(setting) for setting in settings])
        except (HydraException, ValueError) as error:
            raise ConfigError(explain(error, settings)) from None
