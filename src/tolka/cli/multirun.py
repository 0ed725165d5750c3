"""Several trainings by one command, which a launcher of Hydra's starts: mt-train -m model=rnn,lstm."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from hydra._internal.callbacks import Callbacks
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode

from tolka.api.train import train
from tolka.config.compose import ConfigSource, hydra_of
from tolka.config.plugins import load_plugins
from tolka.config.sweep import SweepPlan, is_of_hydra, plan
from tolka.config.typed import quote_setting, quote_value
from tolka.errors import StoppedError, TolkaError
from tolka.report.page import PAGE, write_page
from tolka.report.runs import read_run
from tolka.system.atomic import replace_text
from tolka.system.progress import say

if TYPE_CHECKING:
    from omegaconf import DictConfig

_JOBS = "jobs"  # folder with one file for each training that this command has ended
# Hydra makes no folder, writes no log and keeps no copy of the settings: a run's folder has all of these.
_NOTHING_OF_ITS_OWN = (
    *("hydra.sweep.subdir=.", "hydra.output_subdir=null"),
    *("hydra/job_logging=none", "hydra/hydra_logging=none"),
)


@dataclass(frozen=True)
class SweepJob:
    """What Hydra calls for each training, with joblib in a process of its own.

    plugins: settings that name modules to import.
    """

    sweep: SweepPlan
    plugins: tuple[str, ...]

    def __call__(self, config: "DictConfig") -> float | None:
        """Train; return the best value of trainer.metric, or None if the training failed, which is reported."""
        from hydra.core.hydra_config import HydraConfig

        load_plugins(self.plugins, say)  # again: with joblib, this process has imported nothing yet
        hydra = HydraConfig.get()
        number = int(hydra.job.num)
        base, total = self.sweep.base, len(self.sweep.trainings)
        jobs, processors = int(hydra.launcher.get("n_jobs") or 1), os.cpu_count() or 1
        if jobs != 1:  # -1 in joblib: one for each processor; trainer.threads may set another number of threads
            torch.set_num_threads(max(1, processors // (processors if jobs < 0 else jobs)))
        one = self.sweep.training(number, list(hydra.overrides.task))
        say(f"training {number + 1}{f' of {total}' if total else ''}: {one.label}")
        value, fault = None, ""
        try:
            value = train(one.config).state.best
        except StoppedError as error:  # ends the sweep; other errors are those of one training
            raise _Stop(error) from None
        except TolkaError as error:
            say(f"error: {one.label}: {error}")
            fault = str(error)
        # In files, as the jobs may be other processes, and launchers return their values in the end only.
        (base / _JOBS).mkdir(parents=True, exist_ok=True)
        record = {"label": one.label, "error": fault, "value": value}
        replace_text(base / _JOBS / f"{number:04}.json", json.dumps(record, ensure_ascii=False))
        if one.config.report.page:
            try:
                say(f"all so far: {_page(base, one.config.report.plots)}")
            except (OSError, TolkaError) as error:
                say(f"note: the page about all is not written: {error}")
        return value


def sweep(settings: Sequence[str], plugins: Sequence[str], source: ConfigSource) -> dict[Path, str]:
    """Train every combination of the values that settings list, each in its own folder; return folder -> error, or "".

    All configurations are checked before the first training begins: ConfigError as `plan`. StoppedError when a signal
    asks for an end: the same command resumes where it stopped.
    """
    planned = plan(settings, source, say)
    if planned.trainings:  # a sweeper that draws the values continues with those of an earlier call
        shutil.rmtree(planned.base / _JOBS, ignore_errors=True)
    own = [*map(quote_setting, filter(is_of_hydra, settings)), f"hydra.sweep.dir={quote_value(str(planned.base))}"]
    with hydra_of(source) as hydra:
        loader = hydra.config_loader
        config = loader.load_configuration(source.primary or "train", [*own, *_NOTHING_OF_ITS_OWN], RunMode.MULTIRUN)
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(loader, Callbacks()),
            task_function=SweepJob(planned, tuple(plugins)),
            config=config,
        )

        def launch(jobs: Sequence[Sequence[str]], first: int) -> list[float | None]:
            return [each.return_value for each in launcher.launch(jobs, initial_job_idx=first)]

        try:
            if planned.search:
                planned.search.run(planned.base, launch, say)
            else:
                launch([list(each.settings) for each in planned.trainings], 0)
        except _Stop as stop:
            raise stop.error from None
    return read_outcomes(planned.base)


class _Stop(BaseException):
    """What a signal asks for, on its way through a launcher."""

    # Not an Exception: after one of these a launcher starts the next training.
    def __init__(self, error: StoppedError) -> None:
        super().__init__(error)
        self.error = error


def read_outcomes(base: Path) -> dict[Path, str]:
    """Return the outcomes recorded so far: the folder of each training, and its error, "" if it succeeded."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((base / _JOBS).glob("*.json"))]
    return {base / each["label"]: each["error"] for each in records}


def _page(base: Path, plots: bool) -> Path:
    """Write the page that compares all finished runs, of earlier calls as well; failures of this call are named.

    plots: whether it has pictures.
    """
    failed = {folder.name: error for folder, error in read_outcomes(base).items() if error}
    # In the order in which they began: those of earlier calls, which may have had other settings, come first.
    begun = sorted(base.glob("*/config.yaml"), key=lambda path: path.stat().st_mtime)
    folders = [path.parent for path in begun if path.parent.name not in failed]
    finished = [each for each in folders if (each / PAGE).is_file()]
    return write_page(base, base.resolve().name, [read_run(each, each.name) for each in finished], failed, plots)
