"""Train, or only prepare the text: a configuration in, a typed result out."""

import os
import shlex
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from tolka.auto.rules import choices_table
from tolka.config.command_line import train_config, with_recipe
from tolka.config.plugins import LOADED, load_plugins
from tolka.config.schemas import TrainConfig, rebuild
from tolka.config.typed import Settings, as_config
from tolka.data.preparation import Prepared
from tolka.distributed.processes import RESTARTS, process_count, run_together
from tolka.errors import LostProcessError, StoppedError, TolkaError
from tolka.evaluation.tester import TestResult
from tolka.evaluation.verdict import Verdict
from tolka.options.registry import plugins_of
from tolka.report.summary import closing_words
from tolka.run.chosen import with_chosen_settings
from tolka.run.inputs import read_inputs
from tolka.run.next_commands import with_plugins
from tolka.run.pipeline import run_training
from tolka.run.provenance import PROVENANCE, differing_entries, provenance, recorded_calls
from tolka.run.texts import open_corpus
from tolka.system import interrupts
from tolka.system.device import choose_device, use_threads
from tolka.system.launch import end_with_agent, launch, restarts, translate_slurm
from tolka.system.memory import is_out_of_memory, keep_freed_memory, peak_memory_bytes
from tolka.system.progress import Say, say, silent
from tolka.text.corpora.base import CorpusConfig
from tolka.training.options import TrainerConfig
from tolka.training.run_folder import next_time
from tolka.training.state import TrainState

_LATE_SECONDS = 5.0  # for the agent to end a process that a signal or the loss of another one has stopped


@dataclass(frozen=True, repr=False)
class TrainResult:
    """The result of a training. model: the directory to translate with, as in `tolka.load(result.model)`.

    verdict: whether it is usable, and what to try next; None in processes beside the first.
    """

    model: Path
    state: TrainState
    tests: list[TestResult]
    seconds: float
    verdict: Verdict | None = None

    def summary(self) -> str:
        """Return scores, time, memory and the next command, as text for a terminal."""
        decoding = ", ".join(f"{test.name} {test.sentences / test.seconds:.0f} sentences/s" for test in self.tests)
        mean = ", ".join(map(str, self.state.best_mean_of))
        which = f"mean of updates {mean}" if mean else f"update {self.state.best_update} of {self.state.update}"
        facts = {
            "best model": f"{self.model} ({which})",
            "training": f"{self.state.seconds / 60:.1f} min, {self.state.tokens:,} target tokens, validation included",
            "this command": f"{self.seconds / 60:.1f} min, peak memory {peak_memory_bytes() / 1e9:.2f} GB",
        }
        if decoding:
            facts["decoding"] = decoding
        verdict = self.verdict.as_dict() if self.verdict else {}
        run, tests = self.model.parent, {test.name: test.as_dict() for test in self.tests}
        command = with_plugins(f"mt-translate {shlex.quote(str(run))} FILE", recorded_calls(run))
        return closing_words(run, facts, tests, verdict, command)

    __repr__ = summary


def train(config: TrainConfig | Settings = (), say: Say = say, **settings: Any) -> TrainResult:
    """Train, keep the best model, and test it; the same settings resume the run, as with `mt-train`.

    config: settings as mt-train takes them, or a TrainConfig. settings: more of them as keywords, a group as a mapping.
    say: receives the lines of the log, which is in the run's folder as well; processes that train together print
    theirs. TolkaError, in one line, if it cannot train.

        tolka.train(["model=lstm", "trainer.updates=300"])
        tolka.train(model="lstm", trainer={"updates": 300}, run={"name": "mine"})
    """
    translate_slurm()  # first of all: `launch` below reads the variables that it sets
    config = as_config(TrainConfig, lambda given: train_config(with_recipe(given), say=say), config, settings)
    options = config.trainer
    count = 1 if launch().size > 1 else process_count(options.devices, choose_device(options.device))
    if count > 1:
        # New processes import no plugins by themselves, and a configuration may name classes of theirs.
        plugins = dict.fromkeys([*LOADED, *plugins_of(config.as_dict())])
        named = [f"plugins=[{name}]" for name in plugins]
        result: TrainResult = run_together(
            count, lambda: next_time(config.run.folder), _train_rank, config.as_dict(), named, count
        )
        return result
    started_at = time.perf_counter()
    keep_freed_memory()
    end_with_agent()
    outcome = run_training(config, say)
    seconds = time.perf_counter() - started_at
    return TrainResult(config.run.folder / "best", outcome.state, outcome.tests, seconds, outcome.verdict)


def _train_rank(values: Mapping[str, Any], plugins: Sequence[str], count: int) -> TrainResult | Exception:
    """Train as one of `count` processes of this machine; return an error instead of raising it."""
    load_plugins(plugins, say)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))  # else each process would use all cores
    config = rebuild(values)
    if restarts():
        last = config.run.folder / "last"
        where = f"from {last}" if last.is_dir() else "from the beginning"
        say(f"note: a process was killed: all of them begin again {where} ({restarts()} of {RESTARTS} times)")
    try:
        return train(config)
    except TolkaError as error:
        if isinstance(error, LostProcessError) and not error.reported:
            # The agent, which ends this process, does not know the details.
            interrupts.print_last_line(f"warning: {error}")
        if isinstance(error, LostProcessError | StoppedError):
            # The agent may be waiting for this process to end, after a signal that training has answered.
            late = threading.Timer(_LATE_SECONDS, os._exit, [1])
            late.daemon = True
            late.start()
        return error
    except Exception as error:
        # Returned, since the agent would restart a process that raises, which mends none of these.
        if isinstance(error, OSError):
            return error
        if is_out_of_memory(error):
            return MemoryError(str(error))
        traceback.print_exc()  # a bug: the agent would not show where it is
        return TolkaError(f"process {launch().rank} of {count} met {type(error).__name__}: {error}")


def differences_since(run: Path, options: CorpusConfig, cache: Path, trainer: TrainerConfig) -> list[str]:
    """Return the differences from a run's machine, versions and texts that may change its results.

    cache: run.prepared.
    """
    calls = recorded_calls(run)
    if not calls:
        return [f"nothing is known of it: {run / PROVENANCE} is missing or damaged"]
    use_threads(trainer.threads)
    corpus = open_corpus(options, cache, silent)
    return list(differing_entries(calls[0], provenance(corpus, choose_device(trainer.device))))


def prepare(config: TrainConfig, say: Say = say) -> Prepared:
    """Prepare the text as a training would, and read the validation and test sets. say: receives notes.

    Another process with the same settings and run.prepared waits meanwhile. TolkaError as `train`.
    """
    config, choices = with_chosen_settings(config)
    if choices:
        say(choices_table([asdict(choice) for choice in choices]))
    return read_inputs(config, say).prepared
