"""Hydra's sweeper for Optuna: hydra/sweeper=optuna."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep, Transformer
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from tolka.errors import ConfigError
from tolka.metrics.options import MINIMIZED
from tolka.options.checks import at_least, at_most, one_of
from tolka.options.parsing import build
from tolka.system.progress import Say, silent

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

# Not the published plugin (hydra-optuna-sweeper 1.4.0rc3, for Hydra 1.4 alone), which resumes no study: after a study
# of 5 trainings that was killed in the third, two more calls of the same command make 10 trainings in place of 3, draw
# the same values again with the same seed, and never end the killed one. Nor does it know which way a metric is better.
TARGET = "hydra_plugins.tolka.OptunaSweeper"  # Hydra looks up plugins of this top-level package alone
JOURNAL = "optuna.journal"
_INTERRUPTED = "interrupted"  # attribute of a trial: whether it was killed, and is tried again


@dataclass(frozen=True)
class OptunaConfig:
    """The settings hydra.sweeper.* of hydra/sweeper=optuna.

    n_trials: trainings in all, those of earlier calls included. n_jobs: how many are launched together. direction:
    maximize or minimize; "" = as trainer.metric is better. seed: of Optuna's sampler (TPE). params: key -> range, as on
    the command line.
    """

    n_trials: int = 20
    n_jobs: int = 1
    direction: str = ""
    seed: int = 1
    params: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        at_least(self, "hydra.sweeper", 1, "n_trials", "n_jobs")
        at_least(self, "hydra.sweeper", 0, "seed")
        at_most(self, "hydra.sweeper", 2**31 - 1, "seed")
        one_of(self, "hydra.sweeper", "direction", ("", "maximize", "minimize"))
        if not isinstance(self.params, Mapping):
            raise ConfigError(f"hydra.sweeper.params ({self.params}) must be a mapping of settings to ranges")


class OptunaSweeper(Sweeper):
    """Asks Optuna for the values to train with, and tells it the best value of trainer.metric.

    The study is a journal in the sweep's folder: the same command resumes it, and a training that was killed is tried
    again with the same values, in the same folder.
    """

    def __init__(self, **options: Any) -> None:
        """options: those of OptunaConfig."""
        self.options = build(OptunaConfig, options, "hydra.sweeper")

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep Hydra's context and settings, and make the launcher, for `sweep`; notes go to the task's `say`."""
        self.say: Say = getattr(task_function, "say", silent)
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Train until there are `n_trials`; ConfigError without Optuna, or for a range that it does not know."""
        assert self.hydra_context is not None
        assert self.config is not None
        assert self.launcher is not None
        optuna = _optuna()
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides(
            [*(f"{key}={value}" for key, value in self.options.params.items()), *arguments]
        )
        space = search_space(overrides)
        fixed = [str(each.input_line) for each in overrides if not each.is_sweep_override()]
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        direction = self.options.direction or ("minimize" if self.config.trainer.metric in MINIMIZED else "maximize")
        study = _study(optuna, folder / JOURNAL, direction, self.options.seed, self.say)
        number = _ended_trials(study)
        while (wanted := self.options.n_trials - _ended_trials(study)) > 0:
            trials = [study.ask(space) for _ in range(min(wanted, self.options.n_jobs))]
            batch = [[*fixed, *(f"{key}={_text(value)}" for key, value in each.params.items())] for each in trials]
            results = self.launcher.launch(batch, initial_job_idx=number)
            number += len(trials)
            for trial, result in zip(trials, results, strict=True):
                failed = optuna.trial.TrialState.FAIL if result.return_value is None else None
                study.tell(trial, result.return_value, state=failed)
        if succeeded := sum(trial.value is not None for trial in study.get_trials(deepcopy=False)):
            best = study.best_trial
            values = " ".join(f"{key}={_text(value)}" for key, value in best.params.items())
            self.say(f"best of {succeeded} trainings: {best.value:.4g} with {values}")


def search_space(overrides: Sequence[Override]) -> "dict[str, BaseDistribution]":
    """Return the distribution of each setting that lists values; tag(log, interval(a,b)) is on a logarithmic scale."""
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


@functools.cache
def register() -> None:
    """Let hydra/sweeper=optuna be chosen in this process; it is made by a command, whose process can import it."""
    # Not as an installed module of hydra_plugins, which every other Hydra program of the environment would load.
    module, _, name = TARGET.rpartition(".")
    Plugins.instance().register(type(name, (OptunaSweeper,), {"__module__": module}))
    with warnings.catch_warnings():  # Hydra 1.4 warns that this replaces that of a published plugin
        warnings.simplefilter("ignore")
        ConfigStore.instance().store(
            group="hydra/sweeper", name="optuna", node={"_target_": TARGET, **asdict(OptunaConfig())}
        )


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
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name="tolka",
        direction=direction,
        load_if_exists=True,
    )
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
    """Return how many trials have ended by themselves."""
    ended = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    return sum(not trial.user_attrs.get(_INTERRUPTED) for trial in ended)


def _text(value: Any) -> str:
    """Return a value as a setting has it."""
    # Six digits name a folder, and train as well as all of them.
    return f"{value:.6g}" if isinstance(value, float) else str(value)
