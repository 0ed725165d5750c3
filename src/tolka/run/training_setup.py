"""Build a run's trainer: weights, optimizer, batches, validation, and what is saved."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch

from tolka.auto.rules import validation_interval
from tolka.config.dependent_settings import fit_schedule
from tolka.config.schemas import TrainConfig, check_fsdp, cross_check
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Batches
from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.evaluation.gradient_flow import GradientFlowMeter
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.formats.any_model import tokenizer_of
from tolka.losses.objective import Objective
from tolka.model_directory.card import DATA_SET, hub_data_set
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.read import SavedModel, direction_of
from tolka.model_directory.resume_state import ResumeState
from tolka.models.base import Seq2Seq
from tolka.models.embeddings import VOCABULARY_TENSORS, with_new_rows
from tolka.nn.lora import adapter_parameters, has_adapters
from tolka.optim.schedules.base import LearningRate
from tolka.run.announcement import announcement
from tolka.run.inputs import Inputs
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision, choose_device, describe, use_threads
from tolka.system.memory import return_freed_memory
from tolka.system.number_format import count_text
from tolka.system.randomness import make_deterministic, seed_everything
from tolka.tokenizer.extension import spellings
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.training.callbacks import Callback
from tolka.training.data_position import DataPosition, spelt
from tolka.training.memory import Fit, check_size, copies_of_weights, fewest_batches
from tolka.training.options import TrainerConfig
from tolka.training.parallel.choice import parallel_of
from tolka.training.precision import check_kernels, check_precision, choose_precision
from tolka.training.run_folder import RunFolder
from tolka.training.snapshots import Snapshots
from tolka.training.step import TrainStep
from tolka.training.trainer import Trainer
from tolka.translation.request import Request
from tolka.translation.translator import Translator
from tolka.version import __version__

# Between two ranks: no other run.seed of a few digits comes near.
_SEEDS_APART = 2**32
# Positions, at least; beside what training holds in memory, less than mt-translate takes.
_DECODED_AT_ONCE = 4096


def ready_device(options: TrainerConfig) -> torch.device:
    """Return the device to train on, with torch set up as the options say."""
    device = choose_device(options.device)
    check_precision(options.precision, device)
    use_threads(options.threads)
    if options.deterministic:
        make_deterministic()
    return device


def decoding_options(config: TrainConfig, device: torch.device) -> DecodingConfig:
    """Return the options for translating validation and test sets during a training."""
    tokens = 0 if device.type == "cuda" else max(_DECODED_AT_ONCE, config.batching.tokens)
    return DecodingConfig(device=str(device), tokens=tokens)


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
    # Whichever of the two ends first.
    if options.updates and options.updates <= updates:
        options = replace(options, epochs=0.0)
    else:
        options = replace(options, updates=updates)
    lengths = asdict(config.scheduler)
    # Only now is it known at which update a schedule ends that was to end with the epochs.
    if lengths.get("horizon") == 0 and not options.max_minutes and not config.scheduler.decays_at_plateau:
        lengths["horizon"] = options.updates
    lengths |= fit_schedule(lengths, options.updates, {"horizon"})
    resolved = replace(config, trainer=options, scheduler=type(config.scheduler)(**lengths))
    cross_check(resolved)
    return resolved


def build_trainer(
    config: TrainConfig,
    inputs: Inputs,
    run: RunFolder,
    device: torch.device,
    ranks: Ranks = ALONE,
    callback: Callback | None = None,
    resumed: ResumeState | None = None,
    chosen: Collection[str] = (),
) -> Trainer:
    """Build a trainer with fresh, seeded weights; with `resumed`, in the precision that the run began with.

    chosen: settings that nobody typed, of which some are only known with the prepared text, or with the pace.
    """
    seed_everything(config.run.seed)
    # The weights of a run that goes on are those that it saved.
    like = {} if resumed else inputs.nearest_languages()
    _check_size(config, inputs.prepared.tokenizer, device, ranks)
    model = _model(config, inputs, like, device, run.log)
    teacher = inputs.teacher.model.to(device) if inputs.teacher else None
    objective = config.trainer.objective(model, teacher)
    loader, epoch = inputs.loader(), 0
    if resumed:
        loader.load_state(resumed.facts.get("loader", {}))
        epoch = resumed.facts["train"]["epoch"]
    # Before there was a tokenizer, the updates in a pass were an estimate.
    elif "trainer.validate_every" in chosen and loader.round == "epoch":
        updates = math.ceil(len(loader.plan(0)) / config.trainer.accumulate)
        run.log(f"{count_text(updates, 'update')} in a pass through the text, as its tokenizer cuts it")
        config = replace(config, trainer=replace(config.trainer, validate_every=validation_interval(updates)))
        run.replace_settings(config.as_dict())
    timed = with_updates_of_epochs(config, loader)
    if timed.trainer.epochs:
        run.log(f"trainer.epochs={timed.trainer.epochs:g}: {count_text(timed.trainer.updates, 'update')}")
    if (warmup := timed.scheduler.warmup) != config.scheduler.warmup:
        run.log(f"note: shortened to fit into the training: scheduler.warmup={warmup}")
    # Made by all ranks together, which divide the work: later, not all of them ask for it at the same time.
    loader.plan(epoch)
    precision, reason = _precision(config.trainer.precision, device, objective, loader, ranks, resumed)
    # Before the optimizer: FSDP replaces the weights by this rank's parts of them.
    parallel = parallel_of(config.trainer, objective, ranks, precision)
    if parallel.shares_weights:
        check_fsdp(config)
    step = TrainStep(timed.trainer, objective, config.optimizer.build(model), precision, parallel)
    options = _fitted(timed.trainer, config.batching, step, loader, run.log, resumed)
    rate = LearningRate(timed.scheduler, config.optimizer.lr, options.updates)
    for line in announcement(options, rate, loader, epoch, model, precision, reason):
        run.log(line)
    # After the weights were drawn: every rank has the same ones, but dropout of its own.
    if ranks.rank:
        torch.manual_seed(config.run.seed + ranks.rank * _SEEDS_APART)
    whole = parallel.whole_objective.model
    return Trainer(
        options,
        step,
        rate,
        DataPosition(loader, options.accumulate, run.log, ranks, partial(spelt, inputs.prepared.tokenizer)),
        run,
        _validator(config, inputs, whole, precision, ranks, run.log),
        _snapshots(config, inputs, whole, model.parameter_count(), precision, run.path),
        callback or Callback(),
    )


def _model(
    config: TrainConfig, inputs: Inputs, like: Mapping[str, str], device: torch.device, log: Callable[[str], None]
) -> Seq2Seq:
    """Build the model with fresh weights or those of run.init_from, with frozen parts and adapters.

    like: see `_load`.
    """
    tokenizer = inputs.prepared.tokenizer
    vocabularies = tokenizer.source_size, tokenizer.target_size
    model, new_subwords = config.model.build(*vocabularies, tokenizer.shared), (0, 0)
    if inputs.start is not None:
        old = inputs.start.tokenizer
        new_subwords = tokenizer.source_size - old.source_size, tokenizer.target_size - old.target_size
        _load(model, tokenizer, inputs.start, like)
        inputs.start.model.to("meta")  # its weights leave the memory; the tests read them again
        return_freed_memory()
        log(f"weights, sizes and tokenizer: from {inputs.start.folder}")
        before, now = direction_of(inputs.start.config), config.corpus.direction
        if before != now and not inputs.start.tokenizer.languages:
            log(f"note: it was trained from {before}; it is now trained from {now}, and may forget what it knew")
    config.finetuning.apply(model, new_subwords)
    if config.finetuning.lora_rank and any(new_subwords):
        log(
            "note: best/ gets the adapters merged, and no adapter.safetensors, which fits no model without the new rows"
            f"{'' if like else ': tokenizer.extend=0 trains the adapters alone, and writes it'}"
        )
    if has_adapters(model) and config.trainer.average:
        raise ConfigError("trainer.average and frozen embeddings with new rows do not go together: set it to 0")
    model.recompute = config.trainer.recompute
    return model.to(device)


def check_start(config: TrainConfig, device: torch.device, ranks: Ranks) -> None:
    """Raise ConfigError, before its weights are read, for a model to start from that is too large for the device."""
    if config.run.init_from:
        _check_size(config, tokenizer_of(config.run.init_from), device, ranks)


def _check_size(config: TrainConfig, tokenizer: Tokenizer, device: torch.device, ranks: Ranks) -> None:
    # Several processes may share all but the weights out.
    is_shared = ranks.size > 1 and config.trainer.parallel in ("auto", "fsdp")
    trains_all = not (config.finetuning.lora_rank or config.finetuning.freeze or is_shared)
    copies = copies_of_weights(config.as_dict()["optimizer"]["name"], trains_all)
    sizes = tokenizer.source_size, tokenizer.target_size, tokenizer.shared
    check_size(config.model, sizes, device, copies, 1e9 * config.trainer.memory)


def _load(model: Seq2Seq, tokenizer: Tokenizer, start: SavedModel, like: Mapping[str, str]) -> None:
    """Load the weights of run.init_from; subwords and tags that were added to its tokenizer get rows.

    like: new language -> the known one whose tag's row it gets.
    """
    state = start.model.state_dict()
    if tokenizer.digests != start.tokenizer.digests:
        state = with_new_rows(state, *spellings(start.tokenizer, tokenizer, like))
    differing = [name for name, tensor in model.state_dict().items() if tensor.shape != state[name].shape]
    if differing:
        raise ConfigError(
            f"tokenizer.extend: {model.architecture} keeps rows of subwords in {', '.join(differing)}, and only "
            f"those in {', '.join(VOCABULARY_TENSORS)} can be extended: type tokenizer.extend=0"
        )
    model.load_state_dict(state)


def _precision(
    name: str,
    device: torch.device,
    objective: Objective,
    loader: Batches,
    ranks: Ranks,
    resumed: ResumeState | None,
) -> tuple[Precision, str]:
    """Return the precision, and why."""
    # Decided once for all ranks and for the whole run: a trial by wall time could end differently each time.
    if resumed:
        chosen, reason = Precision(device, resumed.facts["train"]["precision"]), "as the run began"
    else:
        chosen, reason = choose_precision(name, device, objective, partial(loader.batch, 0, 0))
        name, reason = ranks.of_first((chosen.name, reason))
        chosen = Precision(device, name)
    check_kernels(chosen, objective)
    return chosen, reason


def _fitted(
    options: TrainerConfig,
    batching: BatchingConfig,
    step: TrainStep,
    loader: Batches,
    log: Callable[[str], None],
    resumed: ResumeState | None,
) -> TrainerConfig:
    """Return the loop's options, with as few batches per update as fit into memory if batching.auto asks for it."""
    if not batching.auto:
        return options
    tokens = options.accumulate * batching.tokens
    # A resumed run keeps the number that it began with, unless an update has become larger or smaller: cut in another
    # way, the rest of its epoch would have other batches.
    fit = Fit(**resumed.facts["fit"]) if resumed and "fit" in resumed.facts else None
    if fit is None or fit != Fit.of(tokens, fit.batches):
        # The rank with the least free memory decides.
        fits = step.parallel.ranks.gather(fewest_batches(step, loader, tokens, least=batching.max_length + 1))
        fit = max(fits, key=lambda each: each.batches)
    loader.resize(fit.tokens)
    each = f"{fit.batches} batches of {fit.tokens}" if fit.batches > 1 else "one batch"
    log(f"an update of {tokens} tokens goes in {each} (batching.tokens=auto)")
    return replace(options, accumulate=fit.batches)


def _validator(
    config: TrainConfig,
    inputs: Inputs,
    model: Seq2Seq,
    precision: Precision,
    ranks: Ranks,
    log: Callable[[str], None],
) -> Validator:
    """Return the validator: greedy search on the validation set, and the gradient flow if asked for."""
    tokenizer, characters = inputs.prepared.tokenizer, config.cleaning.characters
    decoding = decoding_options(config, precision.device)
    facts = ModelFacts(tokenizer, inputs.training_sources, characters, tuple(inputs.validation))
    translator = Translator(TorchEngine(model, precision.device), facts, Request(GreedyConfig()), decoding, log)
    meters = {
        direction: PerplexityMeter(
            pairs,
            tokenizer,
            decoding.batch_tokens(),
            "corpus.valid",
            characters.of(direction),
            say=log,
            tags=tokenizer.tags(direction),
        )
        for direction, pairs in inputs.validation.items()
    }
    return Validator(
        inputs.validation,
        translator,
        meters,
        precision,
        config.metrics,
        config.trainer.metric,
        config.trainer.best_direction,
        config.trainer.samples,
        gradient_flow_meter(config, inputs, precision.device),
        ranks,
    )


def gradient_flow_meter(config: TrainConfig, inputs: Inputs, device: torch.device) -> GradientFlowMeter | None:
    """Return a meter on the first sentences of the validation set, if trainer.gradient_flow asks for it."""
    if not config.trainer.gradient_flow:
        return None
    direction, pairs = next(iter(inputs.validation.items()))
    return GradientFlowMeter(pairs, inputs.prepared.tokenizer, config.cleaning.characters.of(direction), device)


def _snapshots(
    config: TrainConfig, inputs: Inputs, model: Seq2Seq, parameters: int, precision: Precision, run: Path
) -> Snapshots:
    """Return what copies the model. parameters: those that are trained together, adapters included."""
    # Adapters are merged when the model is saved: they are no parameters of what the card describes.
    merged = adapter_parameters(model)
    settings, prepared, data_set = config.as_dict(), inputs.prepared, hub_data_set(config.as_dict()["corpus"])
    name = config.model.architecture or settings["model"]["name"]
    facts = {
        "languages": ", ".join(map(str, config.corpus.directions)),
        "architecture": f"{name}, {parameters - merged:,} parameters",
        **({DATA_SET: data_set} if data_set else {}),
        "training text": prepared.tally.summary(),
        "target vocabulary": inputs.target_vocabulary,
        "trained on": f"{describe(precision.device)}, {precision.name}",
        "tolka": __version__,
    }
    return Snapshots(model, prepared.tokenizer, settings, inputs.training_sources, facts, run, prepared.folder.name)
