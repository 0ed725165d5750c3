"""The search for the best settings by Optuna: hydra/sweeper=optuna."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tolka.errors import ConfigError
from tolka.options.checks import at_least
from tolka.system.progress import Say

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from optuna.distributions import BaseDistribution

# Not the published plugin (hydra-optuna-sweeper 1.4.0rc3, for Hydra 1.4 alone), which resumes no study: after a study
# of 5 trainings that was killed in the third, two more calls of the same command make 10 trainings in place of 3, draw
# the same values again with the same seed, and never end the killed one. Nor does it know which way a metric is better.
OPTUNA = "tolka.config.optuna_search.OptunaSearch"
SWEEPERS = (BASIC := "hydra._internal.core_plugins.basic_sweeper.BasicSweeper", OPTUNA)
"""What hydra.sweeper._target_ may name; nothing is imported by it."""
JOURNAL = "optuna.journal"
_INTERRUPTED = "interrupted"  # attribute of a trial: whether it was killed, and is tried again


@dataclass(frozen=True)
class OptunaConfig:
    """The settings hydra.sweeper.* of hydra/sweeper=optuna.

    n_trials: trainings in all, those of earlier calls included. n_jobs: how many are launched together. seed: of
    Optuna's sampler (TPE). params: key -> range, as on the command line.
    """

    n_trials: int = 20
    n_jobs: int = 1
    seed: int = 1
    params: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        at_least(self, "hydra.sweeper", 1, "n_trials", "n_jobs")
        at_least(self, "hydra.sweeper", 0, "seed")
        if not isinstance(self.params, Mapping):
            raise ConfigError(f"hydra.sweeper.params ({self.params}) must be a mapping of settings to ranges")


@dataclass(frozen=True)
class OptunaSearch:
    """A search that asks Optuna for the values to train with, and tells it the best value of trainer.metric.

    space: setting -> what its values are drawn from. fixed: the others. lowers: whether lower values are better.
    """

    options: OptunaConfig
    space: "Mapping[str, BaseDistribution]"
    fixed: Sequence[str]
    lowers: bool

    def run(self, folder: Path, launch: Callable[[list[list[str]], int], Sequence[float | None]], say: Say) -> None:
        """Train until there are `n_trials`.

        folder: gets the study, a journal: the same command resumes it, and a training that was killed is tried again
        with the same values, in the same folder. launch: trains with settings, from a number on, and returns the value
        of each training, None for one that failed. say: receives notes.
        """
        optuna = _optuna()
        folder.mkdir(parents=True, exist_ok=True)
        direction = "minimize" if self.lowers else "maximize"
        study = _study(optuna, folder / JOURNAL, direction, self.options.seed, say)
        number = _ended_trials(study)
        while (wanted := self.options.n_trials - _ended_trials(study)) > 0:
            trials = [study.ask(dict(self.space)) for _ in range(min(wanted, self.options.n_jobs))]
            batch = [[*self.fixed, *(f"{key}={_text(value)}" for key, value in each.params.items())] for each in trials]
            for trial, value in zip(trials, launch(batch, number), strict=True):
                study.tell(trial, value, state=optuna.trial.TrialState.FAIL if value is None else None)
            number += len(trials)
        if succeeded := sum(trial.value is not None for trial in study.get_trials(deepcopy=False)):
            best = study.best_trial
            values = " ".join(f"{key}={_text(value)}" for key, value in best.params.items())
            say(f"best of {succeeded} trainings: {best.value:.4g} with {values}")


def search_space(overrides: "Sequence[Override]") -> "dict[str, BaseDistribution]":
    """Return the distribution of each setting that lists values; tag(log, interval(a,b)) is on a logarithmic scale."""
    from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, RangeSweep, Transformer

    kinds = _optuna().distributions
    space: dict[str, BaseDistribution] = {}
    for override in overrides:
        value: Any = override.value()
        key = override.get_key_element()
        if isinstance(value, IntervalSweep):
            whole = isinstance(value.start, int) and isinstance(value.end, int)
            kind = kinds.IntDistribution if whole else kinds.FloatDistribution
            try:
                space[key] = kind(value.start, value.end, log="log" in value.tags)
            except (ValueError, TypeError) as error:
                raise ConfigError(f"{override.input_line} is not a range: {error}") from None
        elif isinstance(value, RangeSweep):
            values = list(override.sweep_iterator(transformer=Transformer.identity))
            space[key] = kinds.CategoricalDistribution(values)
        elif isinstance(value, ChoiceSweep):
            space[key] = kinds.CategoricalDistribution(list(override.sweep_string_iterator()))
        elif override.is_sweep_override():
            raise ConfigError(f"{override.input_line}: Optuna takes a list, choice(), range() and interval()")
    return space


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError("hydra/sweeper=optuna needs Optuna: pip install 'tolka[sweep]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _study(optuna: Any, path: Path, direction: str, seed: int, say: Say) -> Any:
    """Open or begin the study, with the trials of a killed command in its queue."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    earlier = path.exists()
    storage = JournalStorage(JournalFileBackend(str(path)))
    study = optuna.create_study(storage=storage, study_name="tolka", direction=direction, load_if_exists=True)
    # Draws that differ from the earlier ones, which the same seed would repeat.
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.get_trials(deepcopy=False)))
    killed = [trial for trial in study.get_trials() if trial.state == optuna.trial.TrialState.RUNNING]
    for trial in killed:
        # A trial that has ended cannot be continued: another one with its values takes its place, and its folder.
        study._storage.set_trial_user_attr(trial._trial_id, _INTERRUPTED, True)
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        study.enqueue_trial(trial.params)
    if earlier:
        say(f"{path}: {_ended_trials(study)} trainings are done, {len(killed)} interrupted")
    return study


def _ended_trials(study: Any) -> int:
    """Return the number of trials that have ended by themselves."""
    ended = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    return sum(not trial.user_attrs.get(_INTERRUPTED) for trial in ended)


def _text(value: Any) -> str:
    """Return a value as a setting has it."""
    # Six digits name a folder, and train as well as all of them.
    return f"{value:.6g}" if isinstance(value, float) else str(value)
