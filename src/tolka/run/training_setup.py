"""Builds a run's trainer: weights, optimizer, batches, validation, and what is saved."""

import math
from dataclasses import dataclass, replace

import torch

from tolka.config.schemas import TrainConfig, check_fsdp, cross_check
from tolka.config.short_runs import LENGTHS, fit_schedule
from tolka.data.loader import Batches
from tolka.distributed.ranks import Ranks
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.evaluation.gradient_flow import GradientFlowMeter
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.losses.objective import Objective
from tolka.model_directory.card_values import DATA_SET, hub_data_set
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.read import SavedModel, direction_of
from tolka.model_directory.resume_state import ResumeState
from tolka.models.base import Seq2Seq
from tolka.models.embeddings import VOCABULARY_TENSORS, with_new_rows
from tolka.nn.lora import adapter_tensors
from tolka.run.announcement import announcement
from tolka.run.inputs import Inputs
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision, describe
from tolka.system.number_format import counted
from tolka.system.randomness import seed_everything
from tolka.tokenizer.extension import spellings
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.training.callbacks import Callback
from tolka.training.compilation import compile_layers
from tolka.training.memory import Fit, check_size, fewest_batches
from tolka.training.options import TrainerConfig
from tolka.training.parallel.choice import parallel_of
from tolka.training.precision import choose_precision
from tolka.training.run_folder import RunFolder
from tolka.training.snapshots import RunSnapshots, read_last_state
from tolka.training.step import TrainStep
from tolka.training.trainer import Trainer
from tolka.translation.request import Request
from tolka.translation.translator import Translator
from tolka.version import __version__

_SEEDS_APART = 2**32  # between two ranks: no other run.seed of a few digits comes near
_DECODED_AT_ONCE = 4096  # positions, at least; beside what training holds, less than mt-translate takes


def decoding_options(config: TrainConfig, device: torch.device) -> DecodingConfig:
    """Return the options for translating validation and test sets during a training."""
    return DecodingConfig(device=str(device), tokens=max(_DECODED_AT_ONCE, config.batching.tokens))


def with_updates_of_epochs(config: TrainConfig, loader: Batches) -> TrainConfig:
    """Return the configuration with trainer.epochs as updates, from the batches of the first epoch, and its schedule.

    trainer.epochs is 0 where trainer.updates ends the training before. ConfigError for a stream.
    """
    options = config.trainer
    if not options.epochs:
        return config
    if loader.round != "epoch":
        raise ConfigError(
            "trainer.epochs counts passes over the training text, and a stream has none: set trainer.updates"
        )
    updates = math.ceil(options.epochs * len(loader.plan(0)) / options.accumulate)
    if options.updates and options.updates <= updates:
        options = replace(options, epochs=0.0)
    else:
        options = replace(options, updates=updates)
    lengths = dict(config.as_dict()["scheduler"])
    if lengths.get("horizon") == 0 and not options.max_minutes:
        lengths["horizon"] = options.updates
    fitted, _ = fit_schedule(lengths, options.updates, {"horizon"})
    changed = {key: fitted[key] for key in LENGTHS if key in fitted}
    resolved = replace(config, trainer=options, scheduler=replace(config.scheduler, **changed))
    cross_check(resolved)
    return resolved


@dataclass(frozen=True)
class TrainingSetup:
    """Builds what trains the model of one run. device: the one chosen for it. callback, ranks: see `Trainer`."""

    config: TrainConfig
    run: RunFolder
    inputs: Inputs
    device: torch.device
    callback: Callback
    ranks: Ranks

    @property
    def decoding(self) -> DecodingConfig:
        """Options for translating validation and test sets."""
        return decoding_options(self.config, self.device)

    def trainer(self, resumed: ResumeState | None = None) -> Trainer:
        """Build a trainer with fresh, seeded weights; with `resumed`, in the precision that the run began with."""
        seed_everything(self.config.run.seed)
        model = self._model(self.inputs.prepared.tokenizer)
        objective = self.config.trainer.objective(model)
        loader = self.inputs.loader()
        if resumed:
            loader.load_state(resumed.facts.get("loader", {}))
        epoch = resumed.facts["train"]["epoch"] if resumed else 0
        config = with_updates_of_epochs(self.config, loader)
        if config.trainer.epochs:
            self.run.log(f"trainer.epochs={config.trainer.epochs:g}: {counted(config.trainer.updates, 'update')}")
        if (warmup := config.scheduler.warmup) != self.config.scheduler.warmup:
            self.run.log(f"note: shortened to fit into the training: scheduler.warmup={warmup}")
        loader.plan(epoch)  # made by all ranks together
        precision, reason = self._precision(objective, loader, resumed)
        parallel = parallel_of(self.config.trainer, objective, self.ranks, precision)
        if parallel.shares_weights:
            check_fsdp(self.config)
        optimizer = self.config.optimizer.build(model)
        options = self._fitted(config.trainer, objective, optimizer, precision, loader, resumed)
        for line in announcement(config, loader, epoch, model, precision, reason):
            self.run.log(line)
        if self.ranks.rank:  # the same weights, but dropout of its own
            torch.manual_seed(self.config.run.seed + self.ranks.rank * _SEEDS_APART)
        return Trainer(
            options,
            objective,
            optimizer,
            config.scheduler,
            self.config.optimizer.lr,
            loader,
            precision,
            self.run,
            self.inputs.prepared.folder.name,
            self._validator(parallel.whole_objective.model, precision),
            self._snapshots(parallel.whole_objective.model, model.parameter_count(), precision),
            self.inputs.spelt,
            self.callback,
            parallel,
        )

    def _model(self, tokenizer: Tokenizer) -> Seq2Seq:
        """Build the model with fresh weights or those of run.init_from, with frozen parts and adapters."""
        vocabularies = tokenizer.source_size, tokenizer.target_size
        check_size(self.config.model, vocabularies, tokenizer.shared, self.device)
        model = self.config.model.build(*vocabularies, tokenizer.shared)
        if self.inputs.start is not None:
            self._load(model, tokenizer, self.inputs.start)
        self.config.finetuning.apply(model)
        model.recompute = self.config.trainer.recompute
        model = model.to(self.device)
        if self.config.trainer.compile != "off":
            compile_layers(model, self.device, self.config.trainer.compile)
        return model

    def _load(self, model: Seq2Seq, tokenizer: Tokenizer, start: SavedModel) -> None:
        """Load the weights of run.init_from, with rows for subwords that were added to its tokenizer."""
        state = start.model.state_dict()
        if self.config.tokenizer.extend:
            state = with_new_rows(state, *spellings(start.tokenizer, tokenizer))
        differing = [name for name, tensor in model.state_dict().items() if tensor.shape != state[name].shape]
        if differing:
            raise ConfigError(
                f"tokenizer.extend: {model.architecture} keeps rows of subwords in {', '.join(differing)}, and only "
                f"those in {', '.join(VOCABULARY_TENSORS)} can be extended: leave it out"
            )
        model.load_state_dict(state)
        self.run.log(f"weights, sizes and tokenizer: from {start.folder}")
        before, now = direction_of(start.config), self.config.corpus.direction
        if before != now:
            goes_on = f"it goes on from {now[0]} to {now[1]}"
            self.run.log(
                f"note: it was trained from {before[0]} to {before[1]}; {goes_on}, and may forget what it knew"
            )

    def _fitted(
        self,
        options: TrainerConfig,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        loader: Batches,
        resumed: ResumeState | None,
    ) -> TrainerConfig:
        """Return the loop's options, with as few batches per update as fit into memory if batching.auto asks for it.

        A resumed run keeps the number that it began with, unless an update has become larger or smaller.
        """
        batching = self.config.batching
        if not batching.auto:
            return options
        tokens = options.accumulate * batching.tokens
        saved = Fit(**resumed.facts["fit"]) if resumed and "fit" in resumed.facts else None
        if saved is not None and saved == Fit.of(tokens, saved.batches):
            fit = saved
            loader.resize(fit.tokens)
        else:
            step = TrainStep(options, objective, optimizer, precision)
            found = fewest_batches(step, loader, tokens, least=batching.max_length + 1)
            fit = max(self.ranks.gather(found), key=lambda each: each.batches)
            loader.resize(fit.tokens)
        each = f"{fit.batches} batches of {fit.tokens}" if fit.batches > 1 else "one batch"
        self.run.log(f"an update of {tokens} tokens goes in {each} (batching.tokens=auto)")
        return replace(options, accumulate=fit.batches)

    def _validator(self, model: Seq2Seq, precision: Precision) -> Validator:
        """Return the validator: greedy search on the validation set, and the gradient flow if asked for."""
        sources, corpus, pairs = self.inputs.training_sources, self.config.corpus, self.inputs.validation_pairs
        tokenizer, characters = self.inputs.prepared.tokenizer, self.config.cleaning.characters
        facts = ModelFacts(tokenizer, sources, characters, (corpus.direction,))
        engine, request = TorchEngine(model, self.device), Request(GreedyConfig())
        translator = Translator(engine, facts, request, self.decoding, self.run.log)
        return Validator(
            pairs,
            translator,
            PerplexityMeter(pairs, tokenizer, self.decoding.tokens, "corpus.valid", characters),
            precision,
            self.config.metrics,
            corpus.target,
            self.config.trainer.samples,
            self.gradient_flow_meter(),
            self.ranks,
        )

    def gradient_flow_meter(self) -> GradientFlowMeter | None:
        """Return a meter on the first sentences of the validation set, if trainer.gradient_flow asks for it."""
        if not self.config.trainer.gradient_flow:
            return None
        pairs, tokenizer = self.inputs.validation_pairs, self.inputs.prepared.tokenizer
        return GradientFlowMeter(pairs, tokenizer, self.config.cleaning.characters, self.device)

    def _snapshots(self, model: Seq2Seq, parameters: int, precision: Precision) -> RunSnapshots:
        merged = sum(tensor.numel() for tensor in adapter_tensors(model).values())  # no longer there once it is saved
        return RunSnapshots(
            model,
            self.inputs.prepared.tokenizer,
            self.config.as_dict(),
            self.inputs.training_sources,
            self._facts(parameters - merged, precision),
            self.run.path,
            self.inputs.prepared.folder.name,
        )

    def resumed(self) -> ResumeState:
        """Return the state in `last/`; ConfigError as `read_last_state`."""
        return read_last_state(self.run.path, self.inputs.prepared.folder.name)

    def _precision(self, objective: Objective, loader: Batches, resumed: ResumeState | None) -> tuple[Precision, str]:
        if resumed:  # a trial could end differently: the run keeps what it began with
            return Precision(self.device, resumed.facts["train"]["precision"]), "as the run began"
        precision, reason = choose_precision(
            self.config.trainer.precision, self.device, objective, lambda: loader.batch(0, 0).to(self.device)
        )
        name, reason = self.ranks.of_first((precision.name, reason))  # a trial could end differently on each
        return Precision(self.device, name), reason

    def _facts(self, parameters: int, precision: Precision) -> dict[str, str]:
        corpus = self.config.corpus
        return {
            "languages": f"{corpus.source} to {corpus.target}",
            "architecture": f"{self.config.as_dict()['model']['name']}, {parameters:,} parameters",
            **({DATA_SET: name} if (name := hub_data_set(self.config.as_dict()["corpus"])) else {}),
            "training text": self.inputs.prepared.tally.summary(),
            "target vocabulary": self.inputs.target_vocabulary,
            "trained on": f"{describe(self.device)}, {precision.name}",
            "tolka": __version__,
        }
