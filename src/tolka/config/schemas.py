"""The configurations of the three commands: frozen dataclasses that check their values."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

from tolka.config.origins import OPEN
from tolka.config.recipe_settings import RECIPES
from tolka.config.translate_schema import TRANSLATE_GROUPS, Groups
from tolka.data.buckets import BatchingConfig
from tolka.engines.options import DecodingConfig
from tolka.errors import ConfigError
from tolka.jobs.options import TranslateConfig as TranslateConfig
from tolka.metrics.options import COMMAND, MetricsConfig
from tolka.models.base import MODELS, ModelConfig
from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig
from tolka.optim.schedules.base import SCHEDULERS, SchedulerConfig
from tolka.options.checks import at_least, check_licence, named_in_utf8
from tolka.options.parsing import brief
from tolka.options.registry import Registry, plugins_of
from tolka.options.settings import is_resumable, needed_settings, setting
from tolka.report.page import ReportConfig
from tolka.search.base import SearchConfig
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.corpora.base import CORPORA, CorpusConfig
from tolka.text.lines import user_path
from tolka.text.scripts import check_code
from tolka.tokenizer.tokenizer import TokenizerConfig
from tolka.tracking.options import TrackingConfig
from tolka.training.finetuning import FinetuningConfig
from tolka.training.options import TrainerConfig


def check_name(name: str) -> None:
    """Raise ConfigError unless the name is empty or that of one folder below runs/."""
    if name in (".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise ConfigError(
            f"run.name ({brief(name)}) names one folder below runs/, so that it has no / or .. in it: choose another "
            "one, or set run.dir to where the run shall be"
        )


@dataclass(frozen=True)
class RunConfig:
    """Where a run's files go, and its seed."""

    RESUMABLE: ClassVar[bool] = True

    name: str = setting("", literal=True)
    """name of the run, a folder below runs/; empty = from the experiment, or from corpus, languages and model"""
    dir: str = setting("", literal=True)
    """the run's folder; empty = runs/<name>"""
    init_from: str = setting("", literal=True, resumable=False)
    """model or run directory to start from: its weights, sizes and tokenizer, on this corpus; empty = fresh weights"""
    override: bool = False
    """resume a run although its settings were different; differences are reported and recorded in provenance.json"""
    seed: int = setting(1, resumable=False)
    """seed of weights, batches and dropout"""
    prepared: str = setting("runs/prepared", literal=True)
    """cache of tokenised corpora, shared by runs"""
    licence: str = ""
    """licence of the model, for its card: a name on the Hugging Face Hub, as in cc-by-4.0; empty = not stated"""
    origins: dict[str, str] = setting(default_factory=dict, listed=False)
    """who set each setting that has not its default; open = the training text, before training begins"""

    def __post_init__(self) -> None:
        # safetensors opens files only by names in UTF-8.
        named_in_utf8(self, "run", "name", "dir", "init_from", "prepared")
        check_name(self.name)
        check_licence(self.licence, "run.licence")
        at_least(self, "run", 0, "seed")

    @property
    def open_settings(self) -> list[str]:
        """The settings that the training text and the machine decide before training begins."""
        return [key for key, by in self.origins.items() if by == OPEN]

    @property
    def folder(self) -> Path:
        """Folder of the run: run.dir, or run.name below runs/."""
        return user_path(self.dir) if self.dir else Path("runs") / self.name

    @property
    def prepared_folder(self) -> Path:
        """The cache of token stores."""
        return user_path(self.prepared)


@dataclass(frozen=True)
class TrainConfig:
    """The settings of mt-train, one field per config group."""

    run: RunConfig
    corpus: CorpusConfig
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig
    batching: BatchingConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    scheduler: SchedulerConfig
    finetuning: FinetuningConfig
    trainer: TrainerConfig
    search: SearchConfig
    metrics: MetricsConfig
    report: ReportConfig
    tracking: TrackingConfig

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as config.yaml holds them; with the plugins that its classes come from, if any."""
        # Only named, never imported from there: a message can then say which 'plugins=[...]' to type.
        modules = {type(options).__module__ for options in vars(self).values()}
        plugins = sorted(module for module in modules if module.split(".")[0] != __name__.split(".")[0])
        return {**asdict(self), **({"plugins": plugins} if plugins else {})}

    def sized(self) -> "TrainConfig":
        """Return the configuration with the width that model.parameters asks for."""
        # The embeddings are a large share of a small model, so that the size depends on the vocabularies.
        size, tokenizer = self.tokenizer.vocab_size, self.tokenizer.load_given()
        sizes = (tokenizer.source_size, tokenizer.target_size) if tokenizer else (size, size)
        return replace(self, model=self.model.sized(*sizes, self.tokenizer.shared))

    def may_change_on_resume(self, key: str) -> bool:
        """Return whether a resumed run may have another value for `key`, as in "trainer.updates"."""
        group, _, name = key.partition(".")
        return is_resumable(type(getattr(self, group, None)), name)

    def notes(self, typed: Collection[str]) -> Iterator[str]:
        """Yield notes on settings that are allowed but seldom intended. typed: the keys that were typed."""
        for group, options in vars(self).items():
            for name, (needed, lacking) in needed_settings(type(options)).items():
                has_effect = needed in self.run.open_settings or attrgetter(needed)(self)
                if (key := f"{group}.{name}") in typed and not has_effect:
                    yield f"{key} has no effect without {lacking}"
        kinds = [asdict(each).get("name") for each in (self.model, self.optimizer)]
        is_set = {"optimizer.lr", "experiment"} & {*typed, *self.run.open_settings} or self.run.init_from
        if kinds == ["rnn", "adamw"] and self.optimizer.lr == 0.001 and self.scheduler.USES_LR and not is_set:
            yield (
                f"the rate ({self.optimizer.lr:g}) suits a Transformer; with optimizer.lr=0.004 a recurrent model had "
                "23 BLEU instead of 15 on 10 000 pairs"
            )

    def check(self) -> None:
        """Raise ConfigError for the first settings of different groups that do not go together."""
        self.tracking.check()
        self.model.resolved(self.tokenizer.shared)  # ConfigError when two vocabularies are to share a matrix
        for message in (*self._training_conflicts(), *self._finetuning_conflicts()):
            raise ConfigError(message)
        # Where it is "auto", this is known only when the size of the model is, and checked then.
        if self.trainer.parallel == "fsdp":
            self.check_fsdp()

    def _training_conflicts(self) -> Iterator[str]:
        """Yield the conflicts of the settings of the length of training, of its text and of its memory."""
        trainer = self.trainer
        updates = trainer.updates  # 0 where trainer.epochs alone ends the training
        ends = trainer.max_minutes or trainer.epochs or (self.scheduler.decays_at_plateau and trainer.patience)
        if self.scheduler.by_wall_time and not ends:
            yield (
                "scheduler.horizon=0 has the rate fall until trainer.max_minutes are over, and these are not limited: "
                f"set them, or scheduler.horizon={updates} to have it fall until trainer.updates"
            )
        if trainer.metric == COMMAND and not self.metrics.command:
            command = "'COMMAND {hypothesis} {reference}'"
            yield f"trainer.metric=command needs metrics.command, as in metrics.command={command}"
        # The type of a given model is not known.
        if self.batching.sampling and not self.tokenizer.model and self.tokenizer.type not in ("bpe", "unigram"):
            yield (
                "batching.sampling draws other segmentations of the same words, and tokenizer.type="
                f"{self.tokenizer.type} has only one way to cut them: choose bpe or unigram, or batching.sampling=0"
            )
        if trainer.epochs and getattr(self.corpus, "streaming", False):
            yield (
                "trainer.epochs counts passes over the training text, and the end of a stream is not known: set "
                "trainer.updates, or corpus.streaming=false"
            )
        if self.trainer.recompute and not self.model.SUPPORTS_RECOMPUTE:
            yield (
                "trainer.recompute=true saves memory between a Transformer's layers; a recurrent model has none to "
                "save: leave it out, or lower batching.tokens and raise trainer.accumulate"
            )

    def _finetuning_conflicts(self) -> Iterator[str]:
        """Yield the conflicts of settings when a training starts from a model, or needs one to start from."""
        finetuning, extend = self.finetuning, self.tokenizer.extend
        if (finetuning.lora_rank or finetuning.freeze) and not self.run.init_from:
            yield (
                "finetuning.freeze and finetuning.lora_rank keep weights as they are, and without run.init_from these "
                "would be random: name the model to start from"
            )
        if extend and not self.run.init_from:
            yield (
                f"tokenizer.extend ({extend}) adds subwords to those of a model: name it with run.init_from, or set "
                "tokenizer.vocab_size instead"
            )
        if finetuning.lora_rank and self.trainer.average:
            yield (
                "finetuning.lora_rank and trainer.average do not go together: a mean of merged models has no adapter "
                "of that rank; set trainer.average=0 (trainer.ema averages the adapter itself)"
            )

    def check_fsdp(self) -> None:
        """Raise ConfigError for what cannot be computed on parts of the weights."""
        optimizer = self.as_dict()["optimizer"]["name"]
        conflicts = {
            f"optimizer={optimizer} needs whole matrices: take adamw, adam or sgd": optimizer in ("adafactor", "muon"),
            "fp16 is not tried with it: set trainer.precision=bf16": self.trainer.precision == "fp16",
            "batching.tokens=auto tries what fits in each process by itself: give a number": self.batching.auto,
        }
        for words, is_set in conflicts.items():
            if is_set:
                raise ConfigError(f"trainer.parallel=fsdp shares every weight out over the processes; {words}")


@dataclass(frozen=True)
class FilesToScore:
    """The files that mt-eval reads."""

    hypothesis: str = setting("", literal=True, any_bytes=True)
    """file of translations to score, - for standard input; not with a model"""
    reference: list[str] = setting(default_factory=list, literal=True, any_bytes=True)
    """file of reference translations, line by line, or [SEVERAL,FILES] where each line has several"""
    source: str = setting("", literal=True, any_bytes=True)
    """file of sources, which models translate; with translations alone, for a metrics.command that reads it"""
    language: str = setting("", literal=True)
    """language code of the references, for BLEU's tokenizer; empty = the model's target language"""

    def __post_init__(self) -> None:
        if self.language:
            check_code("language", self.language)


@dataclass(frozen=True)
class EvaluateConfig:
    """The settings of mt-eval."""

    files: FilesToScore
    search: SearchConfig
    decoding: DecodingConfig
    metrics: MetricsConfig


REGISTRIES: dict[str, Registry[Any]] = {
    "corpus": CORPORA,
    "model": MODELS,
    "optimizer": OPTIMIZERS,
    "scheduler": SCHEDULERS,
    "recipe": RECIPES,
    **TRANSLATE_GROUPS.registries,
}
_CLASSES: dict[str, type] = {
    **{group: cls for group, cls in get_type_hints(TrainConfig).items() if group not in REGISTRIES},
    **TRANSLATE_GROUPS.classes,
    "files": FilesToScore,
}
GROUPS = Groups(REGISTRIES, _CLASSES)
"""The groups of all commands."""
build_groups = GROUPS.build


_TRAIN_GROUPS = {field.name for field in fields(TrainConfig)}


def rebuild(values: Mapping[str, Any]) -> TrainConfig:
    """Build the configuration from what `TrainConfig.as_dict` returned."""
    known = {group: options for group, options in values.items() if group != "plugins"}
    # A group that is not there has its defaults.
    missing: dict[str, Any] = {name: {} for name in _TRAIN_GROUPS & _CLASSES.keys() - known.keys()}
    if lacking := sorted(_TRAIN_GROUPS - known.keys() - missing.keys()):
        raise ConfigError(f"a training's configuration lacks its groups {', '.join(lacking)}")
    if unknown := sorted(map(str, known.keys() - _TRAIN_GROUPS)):
        # Cut off, since the file may come from anybody, and a message is one line.
        raise ConfigError(f"a training's configuration has no groups {', '.join(unknown)}"[:300])
    return TrainConfig(**build_groups({**known, **missing}, plugins_of(values)))
