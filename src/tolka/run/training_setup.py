"""What trains a run's model, put together: weights, optimiser, batches, validation, what is saved."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from tolka.config.schemas import TrainConfig
from tolka.data.batch import collate
from tolka.data.loader import Batches
from tolka.errors import ConfigError
from tolka.evaluation.gradient_flow import gradient_flow
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.losses.objective import Objective
from tolka.metrics.scores import Validation
from tolka.model_directory.card import model_card
from tolka.model_directory.file_names import ResumeState
from tolka.model_directory.read import languages, load_state, load_weights
from tolka.model_directory.write import Snapshot, snapshot
from tolka.models.base import Seq2Seq
from tolka.nn.lora import adapter_tensors
from tolka.run.announcement import announcement
from tolka.run.inputs import Inputs
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision, describe
from tolka.system.randomness import seed_everything
from tolka.text.normalization import spelt_pair
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.training.compilation import compile_layers
from tolka.training.memory import Fit, check_size, fewest_batches
from tolka.training.options import TrainerConfig
from tolka.training.precision import choose_precision
from tolka.training.run_folder import RunFolder
from tolka.training.selection import TakeSnapshot, Validate
from tolka.training.step import TrainStep
from tolka.training.trainer import Surroundings, Trainer
from tolka.translation.options import DecodingConfig, resolved_split
from tolka.translation.translator import Translator
from tolka.version import __version__

_DECODED_AT_ONCE = 4096  # positions, at least; beside what training holds, less than mt-translate takes
_FLOW_PAIRS = 64  # of the validation set, in one batch


@dataclass(frozen=True)
class Assembly:
    """Of one run. device: as chosen for it."""

    config: TrainConfig
    run: RunFolder
    inputs: Inputs
    device: torch.device

    @cached_property
    def decoding(self) -> DecodingConfig:
        """How validation and test sets are translated."""
        tokens = max(_DECODED_AT_ONCE, self.config.batching.tokens)
        return DecodingConfig(device=str(self.device), tokens=tokens)

    def trainer(self, resumed: ResumeState | None = None) -> Trainer:
        """Fresh seeded weights and all that trains them; with `resumed`, in the precision that the run began with."""
        seed_everything(self.config.run.seed)
        model = self._model(self.inputs.prepared.tokenizer)
        objective = self.config.trainer.objective(model)
        loader = self.inputs.loader()
        if resumed:
            loader.load_state(resumed.facts.get("loader", {}))
        precision, reason = self._precision(objective, loader, resumed)
        optimizer = self.config.optimizer.build(model)
        options = self._fitted(objective, optimizer, precision, loader, resumed)
        epoch = resumed.facts["train"]["epoch"] if resumed else 0
        for line in announcement(self.config, loader, epoch, model, precision, reason):
            self.run.log(line)
        return Trainer(
            options,
            objective,
            optimizer,
            self.config.scheduler,
            self.config.optimizer.lr,
            loader,
            precision,
            self.run,
            self.inputs.prepared.folder.name,
            self._surroundings(model, precision),
        )

    def _surroundings(self, model: Seq2Seq, precision: Precision) -> Surroundings:
        sources, corpus = self.inputs.training_sources, self.config.corpus
        translator = Translator(
            model,
            self.inputs.prepared.tokenizer,
            GreedyConfig(),
            self.device,
            sources.longest,
            self.decoding.tokens,
            self.config.cleaning.unicode,
            split=resolved_split(self.decoding.split, sources.several_sentences),
            languages=(corpus.source, corpus.target),
        )
        return Surroundings(
            self._validator(translator, precision),
            self._snapshots(model, precision),
            self._reload,
            self.inputs.spelt,
            lambda: translator.rehearse([pair.source for pair in self.inputs.validation_pairs]),
        )

    def _model(self, tokenizer: Tokenizer) -> Seq2Seq:
        """Fresh weights, or those of run.init_from; with the parts at rest and the adapters that were asked for."""
        vocabularies = tokenizer.source_size, tokenizer.target_size
        check_size(self.config.model, vocabularies, tokenizer.shared, self.device)
        model = self.config.model.build(*vocabularies, tokenizer.shared)
        if self.inputs.start is not None:
            model.load_state_dict(self.inputs.start.model.state_dict())
            self.run.log(f"weights, sizes and tokenizer: from {self.inputs.start.folder}")
            source, target = languages(self.inputs.start.config)
            if (source, target) != (self.config.corpus.source, self.config.corpus.target):
                self.run.log(f"note: it was trained from {source} to {target}")
        self.config.finetuning.apply(model)
        model.recompute = self.config.trainer.recompute
        model = model.to(self.device)
        if self.config.trainer.compile != "off":
            compile_layers(model, self.device, self.config.trainer.compile)
        return model

    def _fitted(
        self,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        loader: Batches,
        resumed: ResumeState | None,
    ) -> TrainerConfig:
        """The loop's options, with as few batches to an update as memory has room for where batching.auto asks so.

        A run that goes on keeps the number that it began with, unless an update has become larger or smaller.
        """
        options, batching = self.config.trainer, self.config.batching
        if not batching.auto:
            return options
        tokens = options.accumulate * batching.tokens
        saved = Fit(**resumed.facts["fit"]) if resumed and "fit" in resumed.facts else None
        if saved is not None and saved == Fit.of(tokens, saved.batches):
            fit = saved
            loader.resize(fit.tokens)
        else:
            step = TrainStep(options, objective, optimizer, precision)
            fit = fewest_batches(step, loader, tokens, least=batching.max_length + 1)
        each = f"{fit.batches} batches of {fit.tokens}" if fit.batches > 1 else "one batch"
        self.run.log(f"an update of {tokens} tokens goes in {each} (batching.tokens=auto)")
        return replace(options, accumulate=fit.batches)

    def _validator(self, translator: Translator, precision: Precision) -> Validate:
        """Scores the model on the validation set with greedy search; records the gradient's flow where asked to."""
        pairs = self.inputs.validation_pairs
        validator = Validator(
            pairs,
            translator,
            PerplexityMeter(pairs, translator.tokenizer, self.decoding.tokens, "corpus.valid", translator.unicode),
            precision,
            self.config.metrics,
            self.config.corpus.target,
            self.config.trainer.samples,
            lambda name, text: self.run.leave(f"samples/{name}", text),
        )

        def validate(update: int, what: str, tick: Callable[[], object]) -> Validation:
            result = validator(update, what, tick)
            if self.config.trainer.gradient_flow and not what:
                self.record_flow(translator.model, update)
            return result

        return validate

    def record_flow(self, model: Seq2Seq, update: int) -> None:
        """How far back the loss reaches, over the first sentences of the validation set, into metrics.jsonl."""
        tokenizer, unicode = self.inputs.prepared.tokenizer, self.config.cleaning.unicode
        pairs = [spelt_pair(pair, unicode) for pair in self.inputs.validation_pairs[:_FLOW_PAIRS]]
        batch = collate(
            tokenizer.encode_source([pair.source for pair in pairs]),
            tokenizer.encode_target([pair.target for pair in pairs]),
        )
        flows = gradient_flow(model, batch.to(self.device))
        self.run.record({"update": update, "gradient_flow": [flow.as_dict() for flow in flows]})

    def _snapshots(self, model: Seq2Seq, precision: Precision) -> TakeSnapshot:
        """Takes the model as it is."""
        merged = sum(tensor.numel() for tensor in adapter_tensors(model).values())  # no longer there once it is saved
        facts = self._facts(model.parameter_count() - merged, precision)
        config = self.config.as_dict()

        def take(scores: dict[str, Any]) -> Snapshot:
            return snapshot(
                model,
                self.inputs.prepared.tokenizer,
                config,
                self.inputs.training_sources,
                {**scores, "facts": facts},
                model_card(config, facts, scores),
            )

        return take

    def put_into(self, trainer: Trainer, saved: ResumeState) -> None:
        """Have a trainer go on from what `last/` has."""
        trainer.resume(saved, lambda: load_weights(trainer.objective.model, self.run.last))

    def _reload(self, trainer: Trainer) -> None:
        """Have a trainer that has lost its way go on from `last/`."""
        saved = self.resumed()
        trainer.loader.load_state(saved.facts.get("loader", {}))
        self.put_into(trainer, saved)

    def resumed(self) -> ResumeState:
        """The state in `last/`; ConfigError when the text has changed, which the settings alone do not show."""
        state = load_state(self.run.last)
        if state.facts["store"] != self.inputs.prepared.folder.name:
            raise ConfigError(
                f"the training text, or what is held out of it, has changed since the run in {self.run.path} began (or "
                "another version of tolka prepared it), so its token ids mean other pieces; choose another run.name, "
                f"with run.init_from={self.run.path} to begin with its weights"
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
            "tolka": __version__,
        }
