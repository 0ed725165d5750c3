"""Hydra's part: command-line settings and the files of configs/ become plain values.

Nobody beyond this module sees a DictConfig, and nobody sees a traceback of Hydra's.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from tolka.errors import ConfigError
from tolka.model_directory.upgrade import GONE
from tolka.options.registry import did_you_mean, some_of
from tolka.system.package_data import config_dir
from tolka.system.surrogates import is_utf8, printable

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

HYDRA_VERSION = "1.3"
"""Whose defaults hold, as hydra.main's version_base."""
# What a setting changes, its key, and its package: ++trainer.ema, ~experiment, model@model.
_KEY = re.compile(r"(~|\+{0,2})([A-Za-z][\w./]*)(@[\w.:]*)?")
# Hydra's own settings that have an effect in mt-train, and why others have none.
_HYDRA_SETTINGS = (
    *("hydra/launcher", "hydra/sweeper", "hydra.launcher.", "hydra.sweeper.", "hydra.searchpath", "hydra.mode"),
    *("hydra.job.env_set.", "hydra.job.env_copy", "hydra.job.name", "hydra.job.id", "hydra.job.config."),
)
_LAUNCHERS = {
    "joblib": "hydra-joblib-launcher",
    "submitit_local": "hydra-submitit-launcher",
    "submitit_slurm": "hydra-submitit-launcher",
}
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
# A list's next item: in quotes, where commas do not separate, or up to a comma.
_ITEM = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]*?)\s*(?:,|$)""")

# The beginning of ${...} that is text: neither a setting nor a resolver. And backslashes before it, which escape it.
_TEXT = re.compile(r"(\\*)\$\{(?![\w.]+[:.][^{}]*\})")
# Values of several runs, for -m: choice(a,b) of paths, which a comma alone does not separate.
_SWEEP = re.compile(r"(?:choice|glob|shuffle|sort)\(.*\)\Z", re.DOTALL)


@functools.cache
def _literal_keys() -> dict[str, tuple[bool, bool]]:
    from tolka.config.schemas import literal_keys  # imports torch, which --help does without

    return literal_keys()


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
    """A composed configuration.

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
    import hydra
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    _check_form(name, overrides)
    try:
        with _config_loader(source.folder):
            composed = hydra.compose(
                source.primary or name, [quote(override) for override in overrides], return_hydra_config=True
            )
        _check_classes(composed.hydra)
        choices = {str(k): _chosen(v) for k, v in composed.hydra.runtime.choices.items() if "hydra/" not in str(k)}
        own = OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"])
        own._set_parent(composed)  # ${hydra:...} and ${now:...} are looked up from here
        values: Any = OmegaConf.to_container(own, resolve=True)
        mode = str(composed.hydra.mode or "RUN").rpartition(".")[2]
        sweeper: Any = OmegaConf.to_container(composed.hydra.sweeper)
    except (hydra.errors.HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ConfigError(_explain(error, name, overrides)) from None
    return Composed(values, choices, mode, sweeper)


@contextmanager
def _config_loader(folder: Path | None) -> Iterator[None]:
    """Let `hydra.compose` search configs/, and then `folder`; also inside a job that Hydra has started."""
    from hydra import version
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.config_store import ConfigStore
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig  # noqa: F401  (registers Hydra's own config)

    from tolka.config.optuna_sweeper import register as register_sweeper

    version.setbase(HYDRA_VERSION)
    register_sweeper()
    for group, presets in _presets().items():
        for preset, options in presets.items():
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


def _chosen(choice: Any) -> str:
    """Return what was chosen in a group, as it is typed: a name, or [a,b]."""
    return str(choice) if choice is None or isinstance(choice, str) else f"[{','.join(map(str, choice))}]"


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


def _check_form(name: str, overrides: Sequence[str]) -> None:
    """Raise ConfigError for what is no setting, for a group without a choice, and for settings without effect here."""
    known = known_keys(name)
    groups = {key for key in known if "." not in key}
    for override in overrides:
        change, key, package, equals, value = parts(override)
        if not _literal_keys().get(key, (False, False))[1] and not is_utf8(override):
            raise ConfigError(f"'{printable(override)}' is not UTF-8: choose another name or text, or rename the file")
        if not key or not (equals or change == "~"):
            raise ConfigError(f"'{override}' is no setting; write key=value, as in {_example(known)}")
        if key in groups and change == "~" and key != "experiment":
            raise ConfigError(f"{override} would leave out a group that is needed; its settings are {key}.key=value")
        if key in groups and not change and not package and not _may_choose(key, value):
            raise ConfigError(f"unknown {key} '{value}'.{did_you_mean(value, choices_of(key), _help(name))}")
        if "_target_" in key:
            raise ConfigError(f"{key} would let a setting choose which code runs; plugins=[my_module] adds one's own")
        if key.split(".")[0].split("/")[0] == "hydra" and not (name == "train" and key.startswith(_HYDRA_SETTINGS)):
            reason = next((why for start, why in _HYDRA_REFUSED.items() if key.startswith(start)), "leave it out")
            raise ConfigError(f"{key} is Hydra's own setting, which has no effect here; {reason}")


class Parts(NamedTuple):
    """A typed setting: what it changes ("", +, ++ or ~), key, @package, "=" and value. An invalid key is empty."""

    change: str
    key: str
    package: str
    equals: str
    value: str


def parts(override: str) -> Parts:
    """Split a typed setting."""
    typed, equals, value = override.partition("=")
    change, key, package = form.groups("") if (form := _KEY.fullmatch(typed)) else ("", "", "")
    return Parts(change, key, package, equals, value)


def _may_choose(group: str, value: str) -> bool:
    """Return whether a value can be a choice in a group; whether it is one is Hydra's to say."""
    if group == "experiment" and value.startswith("["):
        return True
    return value != "null" and re.fullmatch(r"[A-Za-z].*", value) is not None


def _example(known: Sequence[str]) -> str:
    return "trainer.updates=1000" if "trainer" in known else "search.beam_size=5"


def quote(override: str) -> str:
    """Quote the value of a path or name for Hydra, so that corpus.train=말뭉치/a=b(1) works as it stands."""
    _, key, _, equals, value = parts(override)
    if not equals or key not in _literal_keys() or _SWEEP.match(value):
        return override
    typed = override.partition("=")[0]
    if _literal_keys()[key][0] and value.startswith("[") and value.endswith("]"):
        items = [item for item in _ITEM.findall(value[1:-1]) if item]
        return f"{typed}=[{','.join(quoted(item) for item in items)}]"
    return f"{typed}={quoted(value)}"


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


def _typed(key: str, value: Any) -> str:
    """Return a Python value in Hydra's grammar."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(_typed('', each) for each in value)}]"
    return str(value) if takes_a_path(key) else quoted(str(value))


def takes_a_path(key: str) -> bool:
    """Return whether the key's value is a path or a name, taken as typed."""
    return key in _literal_keys()


def quoted(value: str) -> str:
    """Return a text in quotes, as Hydra's grammar reads it; what is in quotes already stays as it is.

    ${...} in a path is an interpolation if it names a setting or a resolver, as in ${model.name} and ${now:%Y}, and
    text otherwise, since a file's name may have it.
    """
    from hydra.core.override_parser.types import Quote, QuotedString

    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value
    return QuotedString(text=_TEXT.sub(r"\1\1\\${", value), quote=Quote.single).with_quotes()


def _explain(error: Exception, name: str, overrides: Sequence[str]) -> str:
    """Return Hydra's complaint in one line, with the nearest thing that is allowed."""
    text = " ".join(str(error).split()) or " ".join(str(error.__cause__).split())
    plugin = re.search(r"Could not find 'hydra/(\w+)/([^']*)'", text)
    if plugin:
        kind, wanted = plugin.groups()
        if wanted in _LAUNCHERS and kind == "launcher":
            return f"hydra/launcher={wanted} needs {_LAUNCHERS[wanted]}: pip install 'tolka[sweep]'"
        return f"unknown hydra/{kind} '{wanted}'. mt-train --info plugins shows those that are installed"
    missing = re.search(r"Could not find '([\w-]+)/([^']*)'", text)
    if missing:
        group, wanted = missing.groups()
        return f"unknown {group} '{wanted}'.{did_you_mean(wanted, choices_of(group), _help(name))}"
    rejected = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if rejected:
        known = known_keys(name)
        key = rejected[1].split("@")[0]
        if key in known and "." in key:
            group, option = key.split(".", 1)
            kinds = [kind for kind in choices_of(group) if option in _options(group, kind)]
            return f"{key} is no key of the {group} that is chosen; those that have it: {group}={', '.join(kinds)}"
        if key in GONE:
            return f"{key} is gone; in its place: {GONE[key]}"
        return f"unknown key '{key}'.{_nearest(key, known, _help(name))}"
    if "Could not append to config" in text:
        return f"{text.partition('. Either')[0]}: leave out the +"
    for override in overrides:
        _, key, _, _, value = parts(override)
        if key not in _literal_keys() and re.search(r"\d{4300}", value):  # Python reads no longer ones
            return f"{key} ({value[:20]}..., {len(value)} characters) is a number too large to be read"
        if key not in _literal_keys() and re.fullmatch(r"[^\[{'\"]*,[^\]}]*", value):
            return f"'{override}' has several values where one is expected; decimals have a point, and a list is [a,b]"
        if not _parses(quote(override)):
            return f"cannot read '{override}'; a text with such characters needs quotes: \"{key}='{value}'\""
        if "${" in override and "}" not in override.partition("${")[2]:
            return f"cannot read '{override}': after '${{' a '}}' must follow; rename the file or the run"
    return f"cannot read the settings: {text}"


def _nearest(key: str, known: Sequence[str], all_of_them: str) -> str:
    """Return what may have been meant instead of a key: an option of its own group, or of that name in another one."""
    group, _, option = key.partition(".")
    own = [each for each in known if option and each.startswith(f"{group}.")]
    # By the options' own names, since the group's makes any two keys of it look alike.
    near = get_close_matches(option, [each.partition(".")[2] for each in own], n=3, cutoff=0.6)
    elsewhere = [each for each in known if option and each.endswith(f".{option}")]
    if meant := [f"{group}.{each}" for each in near] or elsewhere:
        return f" Did you mean '{meant[0]}'?" + (f" Or {' or '.join(meant[1:])}?" if meant[1:] else "")
    if own:
        return f" Keys of {group}: {some_of(own, all_of_them)}."
    hint, groups = did_you_mean(key, known), sorted({each.partition(".")[0] for each in known})
    return hint if "Did you mean" in hint else f" Groups: {some_of(groups, all_of_them)}."


def _help(name: str) -> str:
    """Return the command that lists every setting of configs/<name>.yaml."""
    return {"translate": "mt-translate --help", "evaluate": "mt-eval --help"}.get(name, "mt-train --help")


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
            raise ConfigError(_explain(error, "train", settings)) from None


def _parses(override: str) -> bool:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(override)
    except (HydraException, ValueError):
        return False
    return True


def choices_of(group: str) -> list[str]:
    """Return what can be chosen in a config group: its YAML files, and presets of registered classes without one."""
    return sorted(_yaml_files(group) | set(_presets().get(group, ())))


@functools.cache
def _yaml_files(group: str) -> frozenset[str]:
    return frozenset(path.stem for path in (config_dir() / group).glob("*.yaml"))


def _presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Return group -> name -> options of registered classes without a YAML file, such as plugins."""
    from tolka.config.schemas import REGISTRIES  # imports torch, which --help does without

    return {
        group: {
            name: dataclasses.asdict(config)
            for name, config in registry.presets().items()
            if name not in _yaml_files(group)
        }
        for group, registry in REGISTRIES.items()
    }


def known_keys(name: str) -> list[str]:
    """Return every group, and every key that a file of one of its groups has."""
    keys: set[str] = set()
    for entry in yaml.safe_load((config_dir() / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]:
        if isinstance(entry, dict):
            (group,) = entry
            keys.add(group)
            for kind in choices_of(group) if group != "experiment" else ():
                keys |= {f"{group}.{key}" for key in _options(group, kind)}
    return sorted(keys)


def _options(group: str, kind: str) -> set[str]:
    """Return the keys of one file of a group."""
    if kind in (presets := _presets().get(group, {})):
        return set(presets[kind])
    return _keys_in_file(config_dir() / group / f"{kind}.yaml")


@functools.cache
def _keys_in_file(path: Path) -> set[str]:
    return {key for key in yaml.safe_load(path.read_text(encoding="utf-8")) if key != "defaults"}
