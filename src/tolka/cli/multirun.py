"""Several trainings in one command: `mt-train -m model=rnn,lstm run.seed=1,2` trains each combination."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tolka.api import TrainResult, train
from tolka.config.command_line import train_config
from tolka.config.compose import takes_a_path
from tolka.config.schemas import TrainConfig, check_name
from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.report.page import PAGE, write_page
from tolka.report.runs import read_run
from tolka.text.lines import user_path


@dataclass(frozen=True)
class Combination:
    """One of the trainings. label: what distinguishes it from the others ("lstm", "rnn-seed=2"). settings: all of its
    own.
    """

    label: str
    settings: list[str]


@dataclass(frozen=True)
class Planned:
    """A combination with its folder and its checked configuration."""

    label: str
    folder: Path
    config: TrainConfig


@dataclass(frozen=True)
class Outcome:
    """The folder of a combination, and its result or its error."""

    label: str
    folder: Path
    result: TrainResult | None
    error: str


def combinations(settings: Sequence[str]) -> list[Combination]:
    """Return every combination of the values that settings list with commas; ConfigError for none, or two alike.

    Lists in brackets, texts in quotes and paths are single values.
    """
    choices = [(key, _values(key, value)) for key, _, value in (setting.partition("=") for setting in settings)]
    swept = [key for key, values in choices if len(values) > 1]
    if not swept:
        raise ConfigError("-m makes several trainings, and no setting lists values: write model=rnn,lstm, say")
    made = []
    for values in product(*(values for _, values in choices)):
        chosen = {key: value for (key, _), value in zip(choices, values, strict=True)}
        label = "-".join(_named(key, chosen[key]) for key in swept)
        made.append(Combination(label, [f"{key}={value}" for key, value in chosen.items()]))
    labels = [combination.label for combination in made]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ConfigError(f"-m: {', '.join(twice)} would be trained twice; name each value once")
    return made


def _named(key: str, value: str) -> str:
    """Return a label that can be a folder's name: lstm of model=lstm, seed=2 of run.seed=2."""
    group, _, option = key.rpartition(".")
    return (f"{option}=" if group else "") + re.sub(r"[^\w.-]+", "_", value)


def _values(key: str, value: str) -> list[str]:
    if takes_a_path(key) or value[:1] in ("[", "{", "'", '"'):
        return [value]
    values = value.split(",")
    if not all(values):
        raise ConfigError(f"'{key}={value}' lists an empty value")
    return values


def folder_of(settings: Sequence[str]) -> Path:
    """Return the folder of the trainings' folders: run.dir, or runs/ and the name of the run or its experiment."""
    given = dict(setting.split("=", 1) for setting in settings)
    if given.get("run.dir"):
        return user_path(given["run.dir"])
    check_name(given.get("run.name", ""))
    return Path("runs") / (given.get("run.name") or given.get("experiment") or "multirun")


def plan(settings: Sequence[str]) -> list[Planned]:
    """Return the trainings that the settings describe, one per combination; nothing is written.

    ConfigError when the folder that is to have the trainings' folders is a run's itself.
    """
    base = folder_of(settings)
    if (base / "config.yaml").exists():
        raise ConfigError(f"{base} is one run's folder already; choose another run.name for several")
    planned = []
    for combination in combinations(settings):
        own = [setting for setting in combination.settings if not setting.startswith(("run.dir=", "run.name="))]
        folder = base / combination.label
        config = train_config([*own, f"run.name={combination.label}", f"run.dir={folder}"])
        planned.append(Planned(combination.label, folder, config))
    return planned


def train_all(settings: Sequence[str], say: Callable[[str], None]) -> list[Outcome]:
    """Train every combination, one after the other, each in its own folder; a failure does not stop the others.

    Where they have pages, the one that sets them side by side is written again when each of them is done; those that an
    earlier call has finished in the same folder are on it from the start, also with other settings.

    All configurations are checked before the first training begins: ConfigError as `plan`. StoppedError when a signal
    asks for an end: the same command goes on where it stopped.
    """
    base, planned = folder_of(settings), plan(settings)
    outcomes = []
    for number, each in enumerate(planned, 1):
        label, folder, config = each.label, each.folder, each.config
        say(f"training {number} of {len(planned)}: {label}")
        try:
            outcomes.append(Outcome(label, folder, train(config), ""))
        except StoppedError:
            raise
        except TolkaError as error:
            say(f"error: {label}: {error}")
            outcomes.append(Outcome(label, folder, None, str(error)))
        if config.report.page:
            folders = {other.label: other.folder for other in planned}
            try:
                say(f"all so far: {_page(base, folders, outcomes)}")
            except (OSError, TolkaError) as error:
                say(f"note: the page about all is not written: {error}")
    return outcomes


def _page(base: Path, folders: Mapping[str, Path], outcomes: Sequence[Outcome]) -> Path:
    """Write the page that compares all finished runs, of earlier calls as well; failures of this call are named."""
    failed = {outcome.label: outcome.error for outcome in outcomes if outcome.error}
    others = [path.parent for path in base.glob("*/config.yaml") if path.parent not in folders.values()]
    others.sort(key=lambda folder: (folder / "config.yaml").stat().st_mtime)
    shown = {**{folder.name: folder for folder in others}, **folders}
    finished = [label for label, folder in shown.items() if label not in failed and (folder / PAGE).is_file()]
    return write_page(base, base.resolve().name, [read_run(shown[label], label) for label in finished], failed)
