"""Build a run's trainer, and announce it: weights, optimizer, batches, validation, and what is saved."""

import math
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from functools import partial

import torch

from tolka.auto.rules import validation_interval
from tolka.config.dependent_settings import fit_schedule
from tolka.config.schemas import TrainConfig
from tolka.data.buckets import BatchingConfig
from tolka.data.loader import Batches
from tolka.distributed.ranks import ALONE, Ranks
from tolka.engines.options import DecodingConfig
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.evaluation.perplexity import PerplexityMeter
from tolka.evaluation.validator import Validator
from tolka.formats.any_model import load_any
from tolka.losses.cross_entropy import Objective
from tolka.model_directory.card import DATA_SET, hub_data_set
from tolka.model_directory.facts import ModelFacts
from tolka.model_directory.read import ResumeState
from tolka.model_directory.settings import direction_of
from tolka.models.base import Seq2Seq
from tolka.nn.lora import adapter_parameters, has_adapters
from tolka.optim.schedules.base import LearningRate, SchedulerConfig
from tolka.run.initial_model import check_fits, initial_model
from tolka.run.inputs import Inputs, describe_sources, make_loader
from tolka.run.parents import nearest_languages
from tolka.search.greedy import GreedyConfig
from tolka.system.device import Precision, choose_device, describe, use_threads
from tolka.system.number_format import count_text
from tolka.system.progress import Say
from tolka.system.randomness import make_deterministic, seed_everything
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.training.callbacks import Callback
from tolka.training.data_position import DataPosition
from tolka.training.memory import fewest_batches
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


def decoding_options(batch_tokens: int, device: torch.device) -> DecodingConfig:
    """Return the options for translating validation and test sets during a training. batch_tokens: batching.tokens."""
    tokens = 0 if device.type == "cuda" else max(_DECODED_AT_ONCE, batch_tokens)
    return DecodingConfig(device=str(device), tokens=tokens, precision="fp32")  # perplexities are in fp32


def with_updates_of_epochs(
    options: TrainerConfig, schedule: SchedulerConfig, loader: Batches
) -> tuple[TrainerConfig, SchedulerConfig]:
    """Return the options with trainer.epochs as updates, from the batches of the first epoch, and their schedule.

    trainer.epochs is 0 where trainer.updates ends the training before.
    """
    if not options.epochs:
        return options, schedule
    assert loader.round == "epoch", "refused for a stream"
    updates = math.ceil(options.epochs * len(loader.plan(0)) / options.accumulate)
    # Whichever of the two ends first.
    if options.updates and options.updates <= updates:
        options = replace(options, epochs=0.0)
    else:
        options = replace(options, updates=updates)
    lengths = asdict(schedule)
    # Only now is it known at which update a schedule ends that was to end with the epochs.
    if lengths.get("horizon") == 0 and not options.max_minutes and not schedule.decays_at_plateau:
        lengths["horizon"] = options.updates
    lengths |= fit_schedule(lengths, options.updates, {"horizon"})
    return options, type(schedule)(**lengths)


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
    seed = config.run.seed
    seed_everything(seed)
    # The weights of a run that goes on are those that it saved.
    texts, parents, tokenizer = inputs.texts, inputs.parents, inputs.prepared.tokenizer
    like = {} if resumed else nearest_languages(parents, config.corpus.like, texts.validation, ranks, run.log)
    check_fits(config, tokenizer, device, ranks.size)
    model = initial_model(config, tokenizer, parents.start, like, run.log)
    if parents.start and not parents.start.tokenizer.languages:
        before, now = direction_of(parents.start.config), config.corpus.direction
        if before != now:
            run.log(f"note: it was trained from {before}; it is now trained from {now}, and may forget what it knew")
    if has_adapters(model) and config.trainer.average:
        raise ConfigError("trainer.average and frozen embeddings with new rows do not go together: set it to 0")
    model.recompute = config.trainer.recompute
    model = model.to(device)
    objective = config.trainer.objective(model, teacher_of(config, tokenizer, device))
    loader, epoch = make_loader(inputs, config, run.log, ranks), 0
    if resumed:
        loader.load_state(resumed.facts.get("loader", {}))
        epoch = resumed.facts["train"]["epoch"]
    # Before there was a tokenizer, the updates in a pass were an estimate.
    elif "trainer.validate_every" in chosen and loader.round == "epoch":
        updates = math.ceil(len(loader.plan(0)) / config.trainer.accumulate)
        run.log(f"{count_text(updates, 'update')} in a pass through the text, as its tokenizer cuts it")
        config = replace(config, trainer=replace(config.trainer, validate_every=validation_interval(updates)))
        run.replace_settings(config.as_dict())
    options, schedule = with_updates_of_epochs(config.trainer, config.scheduler, loader)
    replace(config, trainer=options, scheduler=schedule).check()
    if options.epochs:
        run.log(f"trainer.epochs={options.epochs:g}: {count_text(options.updates, 'update')}")
    if (warmup := schedule.warmup) != config.scheduler.warmup:
        run.log(f"note: shortened to fit into the training: scheduler.warmup={warmup}")
    # Made by all ranks together, which divide the work: later, not all of them ask for it at the same time.
    loader.plan(epoch)
    precision, reason = _precision(config.trainer.precision, device, objective, loader, ranks, resumed)
    # Before the optimizer: FSDP replaces the weights by this rank's parts of them.
    parallel = parallel_of(config.trainer, objective, ranks, precision)
    if parallel.shares_weights:
        config.check_fsdp()
    step = TrainStep(options, objective, config.optimizer.build(model), precision, parallel)
    options = _fit_batches(config.batching, step, loader, run.log, resumed)
    rate = LearningRate(schedule, config.optimizer.lr, options.updates)
    for line in _announcement(options.max_minutes, rate, loader, epoch, model, precision, reason):
        run.log(line)
    # After the weights were drawn: every rank has the same ones, but dropout of its own.
    if ranks.rank:
        torch.manual_seed(seed + ranks.rank * _SEEDS_APART)
    whole = parallel.whole_objective.model
    # Adapters are merged when the model is saved: they are no parameters of what the card describes.
    about = _card_facts(config, inputs, model.parameter_count() - adapter_parameters(whole), precision)
    sources, store = describe_sources(inputs), inputs.prepared.folder.name
    facts = ModelFacts(tokenizer, sources, config.cleaning.characters, tuple(texts.validation))
    trainer = Trainer(
        options,
        step,
        rate,
        DataPosition(loader, options.accumulate, run.log, ranks),
        run,
        _validator(config, inputs, facts, whole, precision, ranks, run.log),
        Snapshots(whole, tokenizer, config.as_dict(), sources, about, run.path, store),
        callback or Callback(),
    )
    trainer.stopping.chosen = chosen
    return trainer


def teacher_of(config: TrainConfig, tokenizer: Tokenizer, device: torch.device) -> Seq2Seq | None:
    """Load trainer.teacher; ConfigError unless it has the run's subwords and direction."""
    if not (name := config.trainer.teacher):
        return None
    teacher, direction = load_any(name), config.corpus.direction
    if (*teacher.facts.directions,) != (direction,):
        raise ConfigError(f"trainer.teacher ({name}) must translate from {direction}, and nothing else: name another")
    if teacher.tokenizer.digests != tokenizer.digests:
        files = ",".join(str(teacher.folder / each) for each in teacher.tokenizer.file_names)
        raise ConfigError(
            f"trainer.teacher ({name}) has other subwords: train with its own, 'tokenizer.model=[{files}]'"
        )
    return teacher.model.to(device)


def _precision(
    name: str, device: torch.device, objective: Objective, loader: Batches, ranks: Ranks, resumed: ResumeState | None
) -> tuple[Precision, str]:
    """Return the precision, and why."""
    # Decided once for all ranks and for the whole run: a trial by wall time could end differently each time.
    if resumed:
        chosen, reason = Precision(device, resumed.facts["train"]["precision"]), "as the run began"
        if chosen.needs_scaler and device.type == "cpu":
            raise ConfigError(
                "this run was begun in fp16 on a GPU, which a CPU does not train in: go on with it on a GPU, or begin "
                "another with its weights (run.init_from)"
            )
    else:
        chosen, reason = choose_precision(name, device, objective, partial(loader.batch, 0, 0))
        name, reason = ranks.of_first((chosen.name, reason))
        chosen = Precision(device, name)
    check_kernels(chosen, objective)
    return chosen, reason


def _fit_batches(
    batching: BatchingConfig, step: TrainStep, loader: Batches, log: Say, resumed: ResumeState | None
) -> TrainerConfig:
    """Return the step's options, with as few batches per update as fit into memory if batching.auto asks for it."""
    options = step.config
    if not batching.auto:
        return options
    tokens = options.accumulate * batching.tokens
    # A resumed run keeps the number that it began with, unless an update has become larger or smaller: cut in another
    # way, the rest of its epoch would have other batches.
    before = resumed.facts.get("fit") if resumed else None
    if before and before["tokens"] == -(-tokens // before["batches"]):
        batches: int = before["batches"]
    else:
        # The rank with the least free memory decides.
        batches = max(step.parallel.ranks.gather(fewest_batches(step, loader, tokens, least=batching.max_length + 1)))
    loader.resize(-(-tokens // batches))
    each = f"{batches} batches of {loader.tokens}" if batches > 1 else "one batch"
    log(f"an update of {tokens} tokens goes in {each} (batching.tokens=auto)")
    return replace(options, accumulate=batches)


def _announcement(
    minutes: float, rate: LearningRate, loader: Batches, epoch: int, model: Seq2Seq, precision: Precision, reason: str
) -> Iterator[str]:
    """Yield the lines that announce a run. epoch: the one that training begins in. reason: why the precision."""
    which = "an epoch" if loader.round == "epoch" else f"in {loader.round} {epoch + 1}"
    tokens = loader.tokens_per_batch(epoch)
    yield f"batches: {len(loader.plan(epoch))} {which}, {tokens:.0f} target tokens on average"
    schedule, updates = rate.schedule, rate.updates
    # A schedule by wall time has its floor when the minutes are over, or at the last update if that comes first.
    end = f"after {minutes:g} minutes, or " if schedule.by_wall_time and minutes else ""
    plateau = ", or earlier at a plateau" if schedule.decays_at_plateau else ""
    yield f"learning rate: {asdict(schedule)['name']}, {rate.at(updates, 1.0):.2g} {end}at update {updates}{plateau}"
    parameters, learning = model.parameter_count(), sum(p.numel() for p in model.parameters() if p.requires_grad)
    size = f"{parameters:,} parameters" + (f", {learning:,} of them trained" if learning < parameters else "")
    yield f"model: {size} on {describe(precision.device)}, {precision.name} ({reason})"


def _validator(
    config: TrainConfig, inputs: Inputs, facts: ModelFacts, model: Seq2Seq, precision: Precision, ranks: Ranks, log: Say
) -> Validator:
    """Return the validator: greedy search on the validation set."""
    decoding, options = decoding_options(config.batching.tokens, precision.device), config.trainer
    translator = Translator(TorchEngine(model, precision.device), facts, Request(GreedyConfig()), decoding, log)
    meters = {
        direction: PerplexityMeter(
            pairs,
            facts.tokenizer,
            decoding.batch_tokens(),
            "corpus.valid",
            facts.characters.of(direction),
            tags=facts.tokenizer.tags(direction),
        )
        for direction, pairs in inputs.texts.validation.items()
    }
    validation = inputs.texts.validation
    return Validator(validation, translator, meters, precision, config.metrics, options.metric, options.samples, ranks)


def _card_facts(config: TrainConfig, inputs: Inputs, parameters: int, precision: Precision) -> dict[str, str]:
    """Return the facts of a training that the model card has. parameters: of the model as it is saved."""
    data_set, model = hub_data_set(asdict(config.corpus)), config.model
    trained = "" if inputs.parents.start or config.tokenizer.model else f"{config.tokenizer.type} "
    return {
        "languages": ", ".join(map(str, config.corpus.directions)),
        "architecture": f"{model.architecture or asdict(model)['name']}, {parameters:,} parameters",
        **({DATA_SET: data_set} if data_set else {}),
        "training text": inputs.prepared.tally.summary(),
        "target vocabulary": f"{inputs.prepared.tokenizer.target_size} {trained}subwords",
        "trained on": f"{describe(precision.device)}, {precision.name}",
        "tolka": __version__,
    }
