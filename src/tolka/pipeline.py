"""mt-train, stage by stage: read, prepare, train, test."""

import json
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tolka
from tolka.announcement import announcement
from tolka.atomic import replace_text
from tolka.batch import collate
from tolka.checkpoint import languages, load_model, load_state, load_weights
from tolka.config import TrainConfig, rebuild
from tolka.data.loader import Batches
from tolka.errors import ConfigError, StoppedError, TolkaError
from tolka.evaluation.gradient_flow import gradient_flow
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.showcase import choose_sentences, show
from tolka.evaluation.tester import Tester, TestResult
from tolka.evaluation.validator import Validator
from tolka.inputs import Inputs
from tolka.layout import ResumeState
from tolka.losses import Objective
from tolka.manifest import MANIFEST
from tolka.models.base import Seq2Seq
from tolka.nn.lora import adapter_tensors
from tolka.provenance import PROVENANCE, provenance, recorded
from tolka.report.card import model_card
from tolka.report.page import write_page
from tolka.report.plots import gradient_flow_curves, learning_curves, lr_finder_curve
from tolka.report.runs import SHOWN, read_run
from tolka.runtime import Precision, choose_device, describe, make_deterministic, seed_everything, use_threads
from tolka.scoring import Validation
from tolka.search.greedy import GreedyConfig
from tolka.snapshot import Snapshot, rescore, snapshot
from tolka.text.tokenizer import Tokenizer
from tolka.training.lr_finder import RangeTest, range_test
from tolka.training.memory import look_at_memory
from tolka.training.pace import Pace, measure_pace
from tolka.training.precision import check_precision, choose_precision
from tolka.training.run import RunFolder
from tolka.training.selection import TakeSnapshot, Validate
from tolka.training.signals import listening_to_signals
from tolka.training.state import TrainState
from tolka.training.trainer import Surroundings, Trainer
from tolka.translator import DecodingConfig, Translator

_FLOW_PAIRS = 64  # of the validation set, in one batch


class Pipeline:
    """One run: the stages share what they have made."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.run = RunFolder(config.run.folder)
        self.resuming = False
        self.inputs = Inputs(config, self.run.log)
        self.device = choose_device(config.trainer.device)
        check_precision(config.trainer.precision, self.device)
        use_threads(config.trainer.threads)
        if config.trainer.deterministic:
            make_deterministic()

    def claim(self) -> None:
        """Make the run's folder this run's, to go on with where it has begun; ConfigError as `RunFolder.claim`."""
        self.resuming = self.run.claim(self.config.as_dict(), _completed, self.config.run.override)
        if self.run.overridden:
            self.run.log(f"run.override: from here on other settings hold: {'; '.join(self.run.overridden)}")

    def train(self) -> TrainState:
        """Everything in a claimed folder up to and with training; leaves `best/` and `last/`.

        StoppedError, with the state saved, when a signal asked for an end.
        """
        self.inputs.read()
        self._record_provenance()
        resumed = self._resumed() if self.resuming else None
        trainer = self.trainer(resumed)
        if resumed:
            self._put_into(trainer, resumed)
            self.run.log(f"going on from update {trainer.state.update} of {self.run.last}")
        else:
            for line in look_at_memory(trainer.step, trainer.loader.largest()):
                self.run.log(line)
            if self.config.trainer.gradient_flow:
                self._record_flow(trainer.objective.model, 0)
        with listening_to_signals(trainer) as received:
            state = trainer.fit()
        if received:
            name = signal.Signals(received[0]).name
            saved = (self.run.last / MANIFEST).is_file()
            goes_on = f"goes on from {self.run.last}" if saved else "begins anew, as nothing was saved yet"
            raise StoppedError(
                f"stopped by {name} at update {state.update}; the same command {goes_on}", 128 + received[0]
            )
        return state

    def _record_provenance(self) -> None:
        """One entry for each call that trains."""
        calls = recorded(self.run.path)
        calls.append({**provenance(self.inputs.corpus, self.device), "other_settings": self.run.overridden})
        self.run.leave(PROVENANCE, json.dumps({"calls": calls}, ensure_ascii=False, indent=1))

    def _put_into(self, trainer: Trainer, saved: ResumeState) -> None:
        trainer.resume(saved, lambda: load_weights(trainer.objective.model, self.run.last))

    def _reload(self, trainer: Trainer) -> None:
        """Have a trainer that has lost its way go on from `last/`."""
        saved = self._resumed()
        trainer.loader.load_state(saved.facts.get("loader", {}))
        self._put_into(trainer, saved)

    def find_lr(self) -> RangeTest:
        """Recommend a peak rate instead of training; leaves lr_finder.json and its plot.

        A run that has begun differs in trainer.find_lr, so that `claim` refuses its folder; after this, the same
        settings without it train here as if nothing had been.
        """
        self.claim()
        found = range_test(self.trainer())
        replace_text(self.run.path / "lr_finder.json", json.dumps(found.as_dict(), indent=1))
        self._draw("learning-rate range test", lr_finder_curve)
        self.run.log(f"{self.config.scheduler.setting_of(found.recommended)} is recommended: {found.reason()}")
        return found

    def pace(self) -> Pace:
        """Time some updates of a fresh model; keeps nothing but the prepared text."""
        return measure_pace(self.trainer())

    def trainer(self, resumed: ResumeState | None = None) -> Trainer:
        """Fresh seeded weights and all that trains them; with `resumed`, in the precision that the run began with."""
        seed_everything(self.config.run.seed)
        model = self._model(self.inputs.prepared.tokenizer)
        objective = self.config.trainer.objective(model)
        loader = self.inputs.loader()
        if resumed:
            loader.load_state(resumed.facts.get("loader", {}))
        precision, reason = self._precision(objective, loader, resumed)
        epoch = resumed.facts["train"]["epoch"] if resumed else 0
        for line in announcement(self.config, loader, epoch, model, precision, reason):
            self.run.log(line)
        return Trainer(
            self.config.trainer,
            objective,
            self.config.optimizer.build(model),
            self.config.scheduler,
            self.config.optimizer.lr,
            loader,
            precision,
            self.run,
            Surroundings(
                self._validator(model, precision), self._snapshots(model, precision), self._reload, self.inputs.spelt
            ),
        )

    def _model(self, tokenizer: Tokenizer) -> Seq2Seq:
        """Fresh weights, or those of run.init_from; with the parts at rest and the adapters that were asked for."""
        model = self.config.model.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
        if self.inputs.start is not None:
            model.load_state_dict(self.inputs.start.model.state_dict())
            self.run.log(f"weights, sizes and tokenizer: from {self.inputs.start.folder}")
            source, target = languages(self.inputs.start.config)
            if (source, target) != (self.config.corpus.source, self.config.corpus.target):
                self.run.log(f"note: it was trained from {source} to {target}")
        self.config.finetuning.apply(model)
        return model.to(self.device)

    def _validator(self, model: Seq2Seq, precision: Precision) -> Validate:
        """Scores the model on the validation set with greedy search; records the gradient's flow where asked to."""
        pairs, tokenizer, tokens = self.inputs.validation_pairs, self.inputs.prepared.tokenizer, self._decoding().tokens
        validator = Validator(
            pairs,
            Translator(model, tokenizer, GreedyConfig(), self.device, self.inputs.longest_source, tokens),
            PerplexityMeter(pairs, tokenizer, tokens, "corpus.valid"),
            precision,
            self.config.metrics,
            self.config.corpus.target,
            self.config.trainer.samples,
            self._leave_sample,
        )

        def validate(update: int, what: str, tick: Callable[[], object]) -> Validation:
            result = validator(update, what, tick)
            if self.config.trainer.gradient_flow and not what:
                self._record_flow(model, update)
            return result

        return validate

    def _record_flow(self, model: Seq2Seq, update: int) -> None:
        """How far back the loss reaches, over the first sentences of the validation set, into metrics.jsonl."""
        tokenizer, pairs = self.inputs.prepared.tokenizer, self.inputs.validation_pairs[:_FLOW_PAIRS]
        batch = collate(
            tokenizer.encode_source([pair.source for pair in pairs]),
            tokenizer.encode_target([pair.target for pair in pairs]),
        )
        flows = gradient_flow(model, batch.to(self.device))
        self.run.record({"update": update, "gradient_flow": [flow.as_dict() for flow in flows]})

    def _snapshots(self, model: Seq2Seq, precision: Precision) -> TakeSnapshot:
        """Takes the model as it is, with the state to resume from where there is one."""
        merged = sum(tensor.numel() for tensor in adapter_tensors(model).values())  # no longer there once it is saved
        facts = self._facts(model.parameter_count() - merged, precision)
        config = self.config.as_dict()

        def take(state: ResumeState | None, scores: dict[str, Any]) -> Snapshot:
            taken = snapshot(
                model,
                self.inputs.prepared.tokenizer,
                config,
                self.inputs.longest_source,
                {**scores, "facts": facts},
                model_card(config, facts, scores),
            )
            if state is None:
                return taken
            state.facts["store"] = self.inputs.prepared.folder.name
            return taken.with_state(state)

        return take

    def test(self) -> list[TestResult]:
        """Decode each test set with the best model and score it; writes the scores into `best/` too."""
        saved, decoding = load_model(self.run.best), self._decoding()
        before = Translator.of(self.inputs.start, self.config.search, decoding) if self.inputs.start else None
        tester = Tester(
            Translator.of(saved, self.config.search, decoding),
            before,
            self.config.metrics,
            self.config.corpus.target,
            self._fp32(),
            decoding.tokens,
            self._leave_sample,
        )
        results = [tester(name, pairs) for name, pairs in self.inputs.test_pairs.items()]
        self.run.forget_tests()
        for result in results:
            timed = {"test": result.name, "sentences": result.sentences, "decoding_seconds": result.seconds}
            self.run.record({"update": saved.scores["update"], **timed})
        if results:
            scores = {
                **saved.scores,
                "search": asdict(self.config.search),
                "test": {result.name: result.as_dict() for result in results},
            }
            card = model_card(saved.config, saved.scores["facts"], scores)
            rescore(self.run.best, scores, card)
        return results

    def report(self) -> None:
        """For people: plots, where matplotlib is there to draw them, and the page with the sentences shown in it."""
        self._draw("learning curves", learning_curves)
        if self.config.trainer.gradient_flow:
            self._draw("gradient flow", gradient_flow_curves)
        if self.config.report.page:
            self._show()
            title = self.config.run.name or self.run.path.name
            page = write_page(self.run.path, title, [read_run(self.run.path, title)], {})
            self.run.log(f"report: {page}")

    def _show(self) -> None:
        """Some sentences, translated by the best model as people will."""
        known = next(iter(self.inputs.test_pairs.values()), self.inputs.validation_pairs)
        translator = Translator.of(load_model(self.run.best), self.config.search, self._decoding())
        references = {pair.source: pair.target for pair in known}
        sentences = self.config.report.sentences or choose_sentences(known)
        complaint = show(translator, sentences, references, self.run.path / SHOWN)
        if complaint:
            self.run.log(f"note: {complaint}")

    def _draw(self, what: str, plot: Callable[[Path], Path]) -> None:
        try:
            self.run.log(f"{what}: {plot(self.run.path)}")
        except TolkaError as error:
            self.run.log(str(error))

    def _leave_sample(self, name: str, text: str) -> None:
        self.run.leave(f"samples/{name}", text)

    def _decoding(self) -> DecodingConfig:
        return DecodingConfig(device=str(self.device), tokens=max(DecodingConfig.tokens, self.config.batching.tokens))

    def _fp32(self) -> Precision:
        return Precision(self.device, "fp32")

    def _resumed(self) -> ResumeState:
        """The state in `last/`; ConfigError when the text has changed, which the settings alone do not show."""
        state = load_state(self.run.last)
        if state.facts["store"] != self.inputs.prepared.folder.name:
            raise ConfigError(
                f"the training text, or what is held out of it, has changed since the run in {self.run.path} began (or "
                "another version of tolka prepared it), so its token ids mean other pieces; choose another run.name"
            )
        return state

    def _precision(self, objective: Objective, loader: Batches, resumed: ResumeState | None) -> tuple[Precision, str]:
        if resumed:  # a trial could end differently: the run keeps what it began with
            return Precision(self.device, resumed.facts["train"]["precision"]), "as the run began"
        return choose_precision(
            self.config.trainer.precision, self.device, objective, lambda: loader.batch(0, 0).to(self.device)
        )

    def _facts(self, parameters: int, precision: Precision) -> dict[str, str]:
        corpus = self.config.corpus
        return {
            "languages": f"{corpus.source} to {corpus.target}",
            "architecture": f"{self.config.as_dict()['model']['name']}, {parameters:,} parameters",
            "training text": self.inputs.prepared.tally.summary(),
            "target vocabulary": self.inputs.target_vocabulary,
            "trained on": f"{describe(self.device)}, {precision.name}",
            "tolka": tolka.__version__,
        }


def _completed(saved: Any) -> Any:
    """A run's saved configuration, with the defaults of settings that have come since; what cannot be read stays."""
    try:
        return rebuild(saved).as_dict()
    except (TolkaError, TypeError, AttributeError):
        return saved
