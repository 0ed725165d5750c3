"""Several configurations from one command line, as Hydra's basic sweeper makes them of mt-train -m, or a search."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tolka.config.command_line import check_groups, train_config
from tolka.config.compose import CONFIGS, ConfigSource, compose, parsed_overrides
from tolka.config.optuna_search import BASIC, OptunaConfig, OptunaSearch, search_space
from tolka.config.origins import OPEN
from tolka.config.schemas import TrainConfig, check_name
from tolka.config.typed import split_setting
from tolka.errors import ConfigError
from tolka.metrics.options import MINIMIZED
from tolka.options.parsing import build
from tolka.system.progress import Say, silent
from tolka.text.lines import user_path

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_PLACES = ("run.dir", "run.name")  # of the whole sweep; each training has its own


@dataclass(frozen=True)
class PlannedTraining:
    """One training of a sweep. label: what distinguishes it from the others ("lstm", "rnn-seed=2").

    settings: those of this training, as Hydra writes them.
    """

    label: str
    config: TrainConfig
    settings: Sequence[str]


@dataclass(frozen=True)
class SweepPlan:
    """Several trainings, each in a folder below `base`.

    trainings: in the order of Hydra's basic sweeper; none where a search draws the values.
    """

    base: Path
    trainings: tuple[PlannedTraining, ...]
    search: OptunaSearch | None
    source: ConfigSource

    def training(self, number: int, settings: Sequence[str]) -> PlannedTraining:
        """Return the training of a job. number: from 0. settings: the job's own, as Hydra writes them."""
        if not self.search:
            return self.trainings[number]
        # Hydra quotes the values that were drawn; a label may become a folder's name.
        label = _label([each.replace("'", "") for each in settings], self.search.space)
        return plan_training(self.base, label, settings, self.source)


def combinations(settings: Sequence[str], source: ConfigSource = CONFIGS) -> dict[str, list[str]]:
    """Return every combination of the values that settings list, by its label; ConfigError for none, or two alike.

    Lists in brackets, texts in quotes and paths are single values; choice(), range() and glob() list some.
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.errors import HydraException

    overrides = parsed_overrides(settings, source)
    swept = swept_settings(overrides)
    try:
        # Hydra's own expansion, so that job numbers and folders belong to the same training.
        [rows] = BasicSweeper.split_arguments(overrides, None)
    except (HydraException, ValueError) as error:
        raise ConfigError(f"-m: {error}; lists are as in model=rnn,lstm, and Optuna draws from an interval") from None
    if not rows:
        raise ConfigError("-m: a setting lists no value")
    labels = [_label(row, swept) for row in rows]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ConfigError(f"-m: {', '.join(twice)} would be trained twice; name each value once")
    return dict(zip(labels, rows, strict=True))


def swept_settings(overrides: "Sequence[Override]") -> "dict[str, Override]":
    """Return the settings that list values; ConfigError for none."""
    swept = {each.get_key_element(): each for each in overrides if each.is_sweep_override()}
    if not swept:
        raise ConfigError("-m makes several trainings, and no setting lists values: write model=rnn,lstm, say")
    return swept


def is_of_hydra(setting: str) -> bool:
    """Return whether a setting is one of Hydra's own, which belongs to the sweep and not to its trainings."""
    return re.match(r"[+~]*hydra[./]", setting) is not None


def _label(settings: Sequence[str], keys: Collection[str]) -> str:
    """Return the values of these keys as a label that can be a folder's name: lstm-seed=2 of model and run.seed."""
    parts = []
    for key, _, value in (setting.partition("=") for setting in settings):
        if key in keys:
            name = f"{key.rpartition('.')[2]}=" if "." in key else ""
            parts.append(name + re.sub(r"[^\w.-]+", "_", value))
    return "-".join(parts)


def folder_of(settings: Sequence[str]) -> Path:
    """Return the folder of the trainings' folders: run.dir, or runs/ and the name of the run or its experiment."""
    values = {split_setting(setting).key: split_setting(setting).value for setting in settings}
    if values.get("run.dir"):
        return user_path(values["run.dir"])
    check_name(values.get("run.name", ""))
    return Path("runs") / (values.get("run.name") or values.get("experiment") or "multirun")


def plan(settings: Sequence[str], source: ConfigSource = CONFIGS, say: Say = silent) -> SweepPlan:
    """Return the trainings that the settings describe; nothing is written.

    ConfigError when one of them has a fault, or when the folder for the trainings' folders is a run's itself. say: is
    given notes.
    """
    base = folder_of(settings)
    if (base / "config.yaml").exists():
        named = any(split_setting(each).key == "run.dir" for each in settings)
        key, name = ("run.dir", str(base)) if named else ("run.name", base.name)
        raise ConfigError(f"{base} is one run's folder already: add {key}={name}-several, or another one")
    # Composed without the lists, to know the sweeper: configs/ and the user's files may choose it, too.
    parsed = zip(settings, parsed_overrides(settings, source), strict=True)
    single = compose([text for text, override in parsed if not override.is_sweep_override()], source)
    check_groups(single.values)
    sweeper = dict(single.sweeper)
    is_search = sweeper.pop("_target_") != BASIC
    options = build(OptunaConfig, sweeper if is_search else {"params": sweeper["params"] or {}}, "hydra.sweeper")
    params = [f"{key}={value}" for key, value in options.params.items()]
    settings = [*params, *(each for each in settings if not is_of_hydra(each))]
    if not is_search:
        trainings = [plan_training(base, *each, source, say) for each in combinations(settings, source).items()]
        return SweepPlan(base, tuple(trainings), None, source)
    overrides = parsed_overrides(settings, source)
    swept_settings(overrides)
    fixed = [str(each.input_line) for each in overrides if not each.is_sweep_override()]
    search = OptunaSearch(options, search_space(overrides), fixed, single.get("trainer.metric") in MINIMIZED)
    return SweepPlan(base, (), search, source)


def plan_training(
    base: Path, label: str, settings: Sequence[str], source: ConfigSource, say: Say = silent
) -> PlannedTraining:
    """Return one training of a sweep, in its own folder below `base`."""
    own = [setting for setting in settings if split_setting(setting).key not in _PLACES]
    config = train_config([*own, f"run.name={label}", f"run.dir={base / label}"], source, say=say)
    # By one metric: their results are compared, and a sweeper knows its direction before any text is read.
    origins = {key: by for key, by in config.run.origins.items() if (key, by) != ("trainer.metric", OPEN)}
    return PlannedTraining(label, replace(config, run=replace(config.run, origins=origins)), settings)
