"""The three commands' configurations: what `compose` gives, as frozen dataclasses that check it and carry it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from tolka.checkpoint import load_settings
from tolka.compose import compose
from tolka.data.buckets import BatchingConfig
from tolka.errors import ConfigError, TolkaError
from tolka.models.base import MODELS, TRAINING_ONLY, ModelConfig
from tolka.progress import say
from tolka.registry import Registry, did_you_mean
from tolka.scoring import MetricsConfig
from tolka.search.base import SEARCHES, SearchConfig
from tolka.settings import build
from tolka.text.corpus import CORPORA, CorpusConfig
from tolka.text.lines import user_path
from tolka.text.tokenizer import TokenizerConfig
from tolka.training.finetuning import FinetuningConfig
from tolka.training.optim import OPTIMIZERS, OptimizerConfig
from tolka.training.options import TrainerConfig
from tolka.training.schedulers import SCHEDULERS, SchedulerConfig
from tolka.translator import DecodingConfig
from tolka.upgrade import in_words_of_today


@dataclass(frozen=True)
class RunConfig:
    """Where a run's files go, and its seed."""

    name: str = ""
    """name of the run; empty = made of the experiment's name, or of corpus, languages and model"""
    dir: str = ""
    """the run's folder; empty = runs/<name>"""
    init_from: str = ""
    """model or run directory to go on from: its weights, sizes and tokenizer, on this corpus; empty = train anew"""
    seed: int = 1
    """of weights, batches and dropout"""
    prepared: str = "runs/prepared"
    """cache of tokenised corpora, shared by runs"""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"run.seed ({self.seed}) must be at least 0 and below 2**63")

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return user_path(self.dir) if self.dir else Path("runs") / self.name

    @property
    def prepared_folder(self) -> Path:
        """The cache of token stores."""
        return user_path(self.prepared)


@dataclass(frozen=True)
class TrainConfig:
    """All of mt-train; one field per config group."""

    run: RunConfig
    corpus: CorpusConfig
    tokenizer: TokenizerConfig
    batching: BatchingConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    scheduler: SchedulerConfig
    finetuning: FinetuningConfig
    trainer: TrainerConfig
    search: SearchConfig
    metrics: MetricsConfig

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as config.yaml holds them."""
        return asdict(self)


@dataclass(frozen=True)
class TranslateConfig:
    """All of mt-translate, its files apart."""

    search: SearchConfig
    decoding: DecodingConfig


@dataclass(frozen=True)
class FilesToScore:
    """What mt-eval reads."""

    hypothesis: str = ""
    """file of translations to score; not with a model"""
    reference: str = ""
    """file of reference translations, line by line"""
    source: str = ""
    """file of sources: the model given first translates it"""
    language: str = ""
    """language code of the references, for BLEU's tokenizer; empty = the model's target language"""


@dataclass(frozen=True)
class EvaluateConfig:
    """All of mt-eval."""

    files: FilesToScore
    search: SearchConfig
    decoding: DecodingConfig
    metrics: MetricsConfig


# A group whose class depends on its key `name` has a registry; the others have one class.
_REGISTRIES: dict[str, Registry[Any]] = {
    "corpus": CORPORA,
    "model": MODELS,
    "optimizer": OPTIMIZERS,
    "scheduler": SCHEDULERS,
    "search": SEARCHES,
}
_CLASSES: dict[str, type] = {
    "run": RunConfig,
    "tokenizer": TokenizerConfig,
    "batching": BatchingConfig,
    "finetuning": FinetuningConfig,
    "trainer": TrainerConfig,
    "metrics": MetricsConfig,
    "decoding": DecodingConfig,
    "files": FilesToScore,
}


_TRAIN_GROUPS = {field.name for field in fields(TrainConfig)}


def train_config(overrides: Sequence[str]) -> TrainConfig:
    """The configuration of mt-train; ConfigError, all complaints at once, in one line."""
    given = {override.partition("=")[0] for override in overrides}
    if "run.init_from" in given and "experiment" not in given:
        overrides = ["experiment=finetune", *overrides]
        given.add("experiment")
    values, choices = compose("train", overrides)
    values = _settled(values, given, choices)
    if values["run"]["init_from"]:
        values = _inherited(values, given)
    groups = _build_groups(values)
    run: RunConfig = groups["run"]
    if not run.name:
        groups["run"] = replace(run, name=_default_name(groups["corpus"], choices))
    config = TrainConfig(**groups)
    _cross_check(config)
    for note in _notes(config, given, choices["experiment"]):
        say(f"note: {note}")
    return config


def _settled(values: Mapping[str, Any], given: Collection[str], choices: Mapping[str, str]) -> dict[str, Any]:
    """The values, where an experiment sets keys of a kind that the command line has replaced by another.

    What the other kind does not know is left out; what it knows holds for it too. Both are said, for a learning rate
    is seldom right for two optimisers.

    given: the keys that the command line names; choices: the file taken in each group.
    """
    kept = dict(values)
    named = [group for group in _REGISTRIES if group in given]
    if "experiment" not in given or not named:
        return kept
    _, own_choices = compose("train", [f"experiment={choices['experiment']}"])
    for group in named:
        if choices[group] == own_choices[group]:
            continue
        kind, own = f"{group}={choices[group]}", compose("train", [f"{group}={choices[group]}"])[0][group]
        asked = {
            key: value
            for key, value in values[group].items()
            if f"{group}.{key}" not in given and (key not in own or value != own[key])
        }
        kept[group] = {key: value for key, value in values[group].items() if key not in asked.keys() - own.keys()}
        setter = f"experiment={choices['experiment']} sets"
        for key, value in asked.items():
            if key in own:
                say(f"note: {group}.{key} is {value!r}, as {setter} it; {kind} alone would have {own[key]!r}")
            else:
                say(f"note: {group}.{key} ({value}), which {setter}, is left out: {kind} has no such key")
    return kept


def _inherited(values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The values, with the sizes and the tokenizer of the model in run.init_from where nothing else was asked for.

    Asked for is what the command line names (given), and what an experiment sets to something else than the default.

    ConfigError, with the keys, when something else was asked for that its weights cannot follow.
    """
    folder = user_path(str(values["run"]["init_from"]))
    saved, defaults = load_settings(folder), compose("train", [])[0]
    inherited, differing = dict(values), []
    for group in ("model", "tokenizer"):
        asked = {
            key: value
            for key, value in values[group].items()
            if group in given or f"{group}.{key}" in given or value != defaults[group].get(key)
        }
        inherited[group] = {**saved[group], **asked}
        own, now = saved[group], inherited[group]
        if group == "model":
            own, now = (_spelt_out(sizes, bool(saved["tokenizer"]["shared"])) for sizes in (own, now))
        differing += [
            f"{group}.{key} ({own.get(key)}, now {now.get(key)})"
            for key in asked
            if own.get(key) != now.get(key) and not key.endswith(TRAINING_ONLY)
        ]
    if differing:
        raise ConfigError(
            f"run.init_from ({folder}) has other sizes than were asked for: {', '.join(differing)}. "
            "Leave these settings out to go on with the model's own"
        )
    return inherited


def _spelt_out(sizes: Mapping[str, Any], shared: bool) -> Mapping[str, Any]:
    """A model's options so that equal sizes look equal; as they are where they make no model."""
    try:
        return asdict(build(MODELS.get(str(sizes.get("name"))), sizes, "model").spelt_out(shared))
    except ConfigError:
        return sizes


def translate_config(overrides: Sequence[str]) -> TranslateConfig:
    """The configuration of mt-translate."""
    return TranslateConfig(**_build_groups(compose("translate", overrides)[0]))


def evaluate_config(overrides: Sequence[str]) -> EvaluateConfig:
    """The configuration of mt-eval."""
    return EvaluateConfig(**_build_groups(compose("evaluate", overrides)[0]))


def rebuild(values: Mapping[str, Any]) -> TrainConfig:
    """The configuration that `TrainConfig.as_dict` gave, from a run's or a model's config.yaml.

    Settings that an older version did not know get their defaults, which are what it did.
    """
    missing: dict[str, Any] = {name: {} for name in _TRAIN_GROUPS & _CLASSES.keys() - values.keys()}
    return TrainConfig(**_build_groups({**in_words_of_today(values), **missing}))


def _build_groups(values: Mapping[str, Any]) -> dict[str, Any]:
    """Each group merged onto its dataclass; the complaints of all groups are raised together."""
    groups: dict[str, Any] = {}
    complaints = []
    for group, options in values.items():
        try:
            if group not in _REGISTRIES and group not in _CLASSES:
                raise ConfigError(f"unknown group '{group}'.{did_you_mean(group, [*_REGISTRIES, *_CLASSES])}")
            if not isinstance(options, Mapping):
                raise ConfigError(f"{group} ({options!r}) must be a group of settings, as in {group}.key=value")
            registry = _REGISTRIES.get(group)
            cls = registry.get(str(options.get("name"))) if registry else _CLASSES[group]
            groups[group] = build(cls, options, group)
        except TolkaError as error:
            complaints.append(str(error))
    if complaints:
        raise ConfigError("; ".join(complaints))
    return groups


def _default_name(corpus: CorpusConfig, choices: Mapping[str, str]) -> str:
    experiment = choices.get("experiment", "None")
    if experiment != "None":
        return experiment
    return f"{choices['corpus']}-{corpus.source}-{corpus.target}-{choices['model']}"


def _cross_check(config: TrainConfig) -> None:
    """What no group can know alone."""
    warmup, updates = config.scheduler.warmup, config.trainer.updates
    if warmup > updates:
        raise ConfigError(
            f"scheduler.warmup ({warmup}) is longer than the training (trainer.updates {updates}): "
            "the learning rate would never reach its peak; lower the one or raise the other"
        )
    if config.scheduler.by_the_clock and not config.trainer.max_minutes:
        raise ConfigError(
            "scheduler.horizon=0 has the rate fall until trainer.max_minutes are over, and these are not limited: set "
            f"them, or scheduler.horizon={updates} to have it fall until trainer.updates"
        )
    config.model.spelt_out(config.tokenizer.shared)  # ConfigError when two vocabularies are to share a matrix
    if config.trainer.agreement_after >= updates:
        raise ConfigError(
            f"trainer.agreement_after ({config.trainer.agreement_after}) must be below trainer.updates ({updates}), or "
            "the second pass would never begin"
        )
    finetuning = config.finetuning
    if (finetuning.lora_rank or finetuning.freeze) and not config.run.init_from:
        raise ConfigError(
            "finetuning.freeze and finetuning.lora_rank keep weights as they are, and without run.init_from these "
            "would be random: name the model to go on from"
        )
    if finetuning.lora_rank and config.trainer.average:
        raise ConfigError(
            "finetuning.lora_rank and trainer.average do not go together: a mean of merged models has no adapter of "
            "that rank; set trainer.average=0 (trainer.ema averages the adapter itself)"
        )
    if config.trainer.r_drop and not (config.model.stochastic or config.trainer.word_dropout):
        raise ConfigError(
            f"trainer.r_drop ({config.trainer.r_drop:g}) compares two passes that differ in their dropout, and every "
            "kind of dropout is 0: set model.dropout (0.1, or 0.3 for little text), or trainer.r_drop=0"
        )


def _notes(config: TrainConfig, given: Collection[str], experiment: str) -> Iterator[str]:
    """What is allowed, and seldom meant. given: the keys that the command line names."""
    # Key -> whether it has no effect, and what it lacks.
    idle = {
        "optimizer.lr": (config.scheduler.has_own_peak, "a schedule whose peak it is (this one has scheduler.lr_init)"),
        "trainer.average_of": (not config.trainer.average, "trainer.average"),
        "trainer.simcut_words": (not config.trainer.simcut, "trainer.simcut"),
        "finetuning.lora_alpha": (not config.finetuning.lora_rank, "finetuning.lora_rank"),
        "model.max_positions": (config.model.longest is None, "model.positions=learned"),
    }
    for key, (without_effect, lacking) in idle.items():
        if key in given and without_effect:
            yield f"{key} has no effect without {lacking}"
    if config.run.init_from and experiment != "finetune" and "optimizer.lr" not in given:
        yield (
            f"the rate ({config.optimizer.lr:g}) is that of experiment={experiment}, which trains fresh weights; "
            "experiment=finetune, which run.init_from has by itself, goes on with a tenth of the usual rate"
        )
    longest, limit = config.batching.max_length + 1, config.model.longest
    if limit is not None and limit < longest:
        yield (
            f"the model has {limit} positions (model.max_positions), and a sentence may have {longest} pieces, </s> "
            "included (batching.max_length): those beyond share the last one"
        )
