"""mt-train, stage by stage: read, prepare, train, test."""

import json
import signal
from dataclasses import asdict
from typing import Any

import torch

from tolka.config.schemas import TrainConfig, rebuild
from tolka.distributed.ranks import joined
from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.evaluation.tester import Tester, TestResult
from tolka.model_directory.card import model_card
from tolka.model_directory.read import load_model
from tolka.model_directory.resume_state import ResumeState, restoring
from tolka.model_directory.upgrade import lost_settings
from tolka.model_directory.write import rescore
from tolka.run.inputs import Inputs
from tolka.run.panel import Panel
from tolka.run.provenance import PROVENANCE, provenance, recorded
from tolka.run.results import Plots, ReportPage, ValidationTexts
from tolka.run.training_setup import TrainingSetup, decoding_options
from tolka.system import interrupts
from tolka.system.device import Precision, choose_device, use_threads
from tolka.system.randomness import make_deterministic
from tolka.training.callbacks import CALLBACKS, Beginning, Callbacks, Ending, Guarded
from tolka.training.compilation import compile_now
from tolka.training.memory import check_memory
from tolka.training.precision import check_precision
from tolka.training.run_folder import RunFolder, differences, next_time
from tolka.training.signals import listening_to_signals
from tolka.training.state import TrainState
from tolka.training.time_estimate import TrainingEstimate, estimate_training
from tolka.training.trainer import Trainer
from tolka.translation.translator import Translator
from tolka.version import __version__


class Pipeline:
    """One run, whose stages share their results."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.ranks = joined()
        folder = config.run.folder
        self.run = RunFolder(folder, self.ranks.rank)
        self.resuming = False
        self.inputs = Inputs(config, self.run.log, self.ranks)
        self.device = choose_device(config.trainer.device)
        chosen = [Guarded(name, CALLBACKS.get(name)(), self.run.log) for name in config.tracking.names]
        self._plots = Plots(config, self.run)
        page = ReportPage(config, self.run, self.inputs, decoding_options(config, self.device))
        callbacks = [ValidationTexts(self.run), Panel(), self._plots, page, *chosen]
        self._callbacks = Callbacks(callbacks if self.ranks.is_first else [])
        self._started = False
        self._setup = TrainingSetup(config, self.run, self.inputs, self.device, self._callbacks, self.ranks)
        check_precision(config.trainer.precision, self.device)
        use_threads(config.trainer.threads)
        if config.trainer.deterministic:
            make_deterministic()

    def claim(self) -> None:
        """Claim the run's folder, to train or to resume in it; ConfigError as `RunFolder.claim`."""
        versions = {"tolka": __version__, "torch": str(torch.__version__)}
        first, *others = self.ranks.gather({**self.config.as_dict(), **versions})
        for rank, each in enumerate(others, 1):
            if differing := differences(first, each, lambda key: False, f"in process {rank}:"):
                raise ConfigError(
                    f"the processes of this training have different settings: {'; '.join(differing)}; start all with "
                    "the same command, on machines with the same versions"
                )
        self.resuming, self.run.overridden, error = self.ranks.of_first(
            self._claimed() if self.ranks.is_first else None
        )
        if error:
            raise error
        if self.run.overridden:
            self.run.log(f"run.override: from here on other settings hold: {'; '.join(self.run.overridden)}")

    def _claimed(self) -> tuple[bool, list[str], TolkaError | None]:
        """Claim the folder for all ranks: whether it has a run to resume, its other settings, or why it cannot be."""
        try:
            resuming = self.run.claim(
                self.config.as_dict(), _completed, self.config.run.override, self.config.may_change_on_resume
            )
        except TolkaError as error:
            return False, [], self._missing_file() or error
        return resuming, self.run.overridden, None

    def _missing_file(self) -> TolkaError | None:
        """Return the error of a file that is named and not there: a mistyped path differs from the run's own, too."""
        try:
            self.config.corpus.open()
            self.config.tokenizer.given()
        except TolkaError as error:
            return error
        return None

    def complete(self) -> tuple[TrainState, list[TestResult]]:
        """Train in a claimed folder, test, and report; the callbacks learn how it ended."""
        try:
            state = self.train()
            results = self.test()
            self.ranks.wait()
            interrupts.check()
        except BaseException as error:
            if self._started:
                self._callbacks.on_end(Ending(self.run.path, error=str(error) or type(error).__name__))
            raise
        self._callbacks.on_end(Ending(self.run.path, {result.name: result.as_dict() for result in results}))
        return state, results

    def train(self) -> TrainState:
        """Prepare and train in a claimed folder; leaves `best/` and `last/`.

        StoppedError, with the state saved, when a signal asked for an end.
        """
        interrupts.check()
        self.inputs.read(resuming=self.resuming)
        self._record_provenance()
        resumed = self._setup.resumed() if self.resuming else None
        trainer = self.trainer(resumed)
        self._compare_models(trainer)
        if self.config.trainer.compile != "off":
            seconds = compile_now(trainer.step, trainer.loader.largest())
            self.run.log(
                f"layers compiled in {seconds:.0f} s (trainer.compile); once more for validation, when it comes"
            )
        if resumed:
            with restoring(self.run.last):
                trainer.resume(resumed)
            self.run.log(f"resuming from update {trainer.state.update} of {self.run.last}")
        else:
            for line in check_memory(trainer.step, trainer.loader.largest(), trainer.validator.rehearse):
                self.run.log(line)
            if flow := self._setup.gradient_flow_meter():
                with trainer.step.smoothed():
                    self.run.record({"update": 0, "gradient_flow": flow(trainer.model)})
        self._begin(trainer.state.update)
        with listening_to_signals(trainer) as received:
            state = trainer.fit(validate_start=self.inputs.start is not None)
        received = next((each for each in self.ranks.gather(received) if each), received)
        if received:
            name = signal.Signals(received[0]).name
            raise StoppedError(f"stopped by {name} at update {state.update}; {self._next_time()}", 128 + received[0])
        if state.validated_start and not state.best_update:
            self.run.log(
                "note: no validation was better than the model that training started from, which stays the best: try a "
                "lower optimizer.lr, finetuning.freeze or finetuning.lora_rank, or more text of this kind"
            )
        return state

    def _next_time(self) -> str:
        """Return what the same command would do now."""
        return next_time(self.run.path)

    def _compare_models(self, trainer: Trainer) -> None:
        """Raise ConfigError unless all processes have the same training text, and a model of the same size."""
        parameters = trainer.objective.model.parameter_count()
        each = self.ranks.gather((self.inputs.prepared.folder.name, parameters))
        for rank, (text, size) in enumerate(each):
            if text != each[0][0]:
                raise ConfigError(
                    f"processes 0 and {rank} have different training text, or prepare it differently: every machine "
                    "must see the same files"
                )
            if size != each[0][1]:
                raise ConfigError(
                    f"the model has {each[0][1]:,} parameters in process 0 and {size:,} in process {rank}: every "
                    "machine must have the same version of tolka and of the plugins"
                )

    def _begin(self, update: int) -> None:
        """Tell the callbacks that training begins after this update."""
        self._started = True
        overridden = bool(self.run.overridden)
        self._callbacks.on_start(
            Beginning(self.run.path, self.config.as_dict(), self.run.log, update, self.run.history(), overridden)
        )

    def _record_provenance(self) -> None:
        """Add an entry for this call to provenance.json."""
        if not self.ranks.is_first:
            return
        calls = recorded(self.run.path)
        calls.append({**provenance(self.inputs.corpus, self.device), "other_settings": self.run.overridden})
        self.run.leave(PROVENANCE, json.dumps({"calls": calls}, ensure_ascii=False, indent=1))

    def trainer(self, resumed: ResumeState | None = None) -> Trainer:
        """Build the trainer, as `TrainingSetup.trainer`."""
        return self._setup.trainer(resumed)

    def pace(self) -> TrainingEstimate:
        """Time some updates of a fresh model; only the prepared text is kept."""
        return estimate_training(self.trainer())

    def test(self) -> list[TestResult]:
        """Translate each test set with the best model and score it; writes the scores into `best/` too."""
        interrupts.check()
        saved, decoding = load_model(self.run.best), self._setup.decoding
        before = Translator.of(self.inputs.start, self.config.search, decoding) if self.inputs.start else None
        tester = Tester(
            Translator.of(saved, self.config.search, decoding),
            before,
            self.config.metrics,
            self.config.corpus.target,
            self._fp32(),
            decoding.tokens,
            lambda name, text: self.run.leave(f"samples/{name}", text),
            self.ranks,
        )
        results = [tester(name, pairs) for name, pairs in self.inputs.test_pairs.items()]
        self.run.forget_tests()
        for result in results:
            timed = {"test": result.name, "sentences": result.sentences, "decoding_seconds": result.seconds}
            self.run.record({"update": saved.scores["update"], **timed})
        self.run.finish()
        if results and self.ranks.is_first:
            scores = {
                **saved.scores,
                "search": asdict(self.config.search),
                "test": {result.name: result.as_dict() for result in results},
            }
            card = model_card(saved.config, saved.scores["facts"], scores)
            rescore(self.run.best, scores, card)
        return results

    def _fp32(self) -> Precision:
        return Precision(self.device, "fp32")


def _completed(saved: Any) -> Any:
    """Return a run's saved configuration with the defaults of newer settings; unchanged if it cannot be read.

    Removed settings that had an effect are added, so that they count as different.
    """
    try:
        return {**rebuild(saved).as_dict(), **lost_settings(saved)}
    except (TolkaError, TypeError, AttributeError):
        return saved
