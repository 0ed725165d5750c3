"""The three commands' configurations: Hydra composes them from YAML, frozen dataclasses check and carry them.

Nobody beyond this module sees a DictConfig.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tolka.data.buckets import BatchingConfig
from tolka.errors import ConfigError, TolkaError
from tolka.models.base import MODELS, ModelConfig
from tolka.registry import Registry, did_you_mean
from tolka.resources import config_dir
from tolka.scoring import MetricsConfig
from tolka.search.base import SEARCHES, SearchConfig
from tolka.settings import build
from tolka.text.corpus import CORPORA, CorpusConfig
from tolka.text.tokenizer import TokenizerConfig
from tolka.training.optim import OPTIMIZERS, OptimizerConfig
from tolka.training.schedulers import SCHEDULERS, SchedulerConfig
from tolka.training.trainer import TrainerConfig
from tolka.translator import DecodingConfig


@dataclass(frozen=True)
class RunConfig:
    """Where a run's files go, and its seed."""

    name: str = ""
    """name of the run; empty = made of the experiment's name, or of corpus, languages and model"""
    dir: str = ""
    """the run's folder; empty = runs/<name>"""
    seed: int = 1
    """of weights, batches and dropout"""
    prepared: str = "runs/prepared"
    """cache of tokenised corpora, shared by runs"""

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.dir).expanduser() if self.dir else Path("runs") / self.name

    @property
    def prepared_folder(self) -> Path:
        """The cache of token stores."""
        return Path(self.prepared).expanduser()


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
    "trainer": TrainerConfig,
    "metrics": MetricsConfig,
    "decoding": DecodingConfig,
    "files": FilesToScore,
}
# Values of these keys are paths, which Hydra's grammar would take apart at =, ( and letters beyond ASCII.
_PATH_KEYS = {
    *("corpus.train", "corpus.valid", "corpus.test", "corpus.root", "corpus.path", "corpus.root_train"),
    *("corpus.root_valid", "corpus.root_test"),
    *("run.dir", "run.name", "run.prepared"),
    *("files.hypothesis", "files.reference", "files.source"),
}


def train_config(overrides: Sequence[str]) -> TrainConfig:
    """The configuration of mt-train; ConfigError, all complaints at once, in one line."""
    values, choices = compose("train", overrides)
    groups = _build_groups(values)
    run: RunConfig = groups["run"]
    if not run.name:
        groups["run"] = RunConfig(_default_name(groups["corpus"], choices), run.dir, run.seed, run.prepared)
    config = TrainConfig(**groups)
    _cross_check(config)
    return config


def translate_config(overrides: Sequence[str]) -> TranslateConfig:
    """The configuration of mt-translate."""
    return TranslateConfig(**_build_groups(compose("translate", overrides)[0]))


def evaluate_config(overrides: Sequence[str]) -> EvaluateConfig:
    """The configuration of mt-eval."""
    return EvaluateConfig(**_build_groups(compose("evaluate", overrides)[0]))


def rebuild(values: Mapping[str, Any]) -> TrainConfig:
    """The configuration that `TrainConfig.as_dict` gave, from a run's or a model's config.yaml."""
    return TrainConfig(**_build_groups(values))


def compose(name: str, overrides: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Hydra's composition of configs/<name>.yaml: the values, and which file was chosen in each group."""
    import hydra
    from hydra.core.hydra_config import HydraConfig  # noqa: F401  (registers Hydra's own config)
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    quoted = [quote(override) for override in overrides]
    try:
        with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
            composed = hydra.compose(name, quoted, return_hydra_config=True)
        choices = {str(k): str(v) for k, v in composed.hydra.runtime.choices.items() if not str(k).startswith("hydra/")}
        plain = OmegaConf.to_container(OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"]))
    except (hydra.errors.HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(error, name, overrides)) from None
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}, choices


def quote(override: str) -> str:
    """The override with a path's value quoted for Hydra: corpus.train=말뭉치/a=b(1) works as it stands."""
    key, equals, value = override.partition("=")
    if not equals or key not in _PATH_KEYS or value[:1] in ("'", '"'):
        return override
    if value.startswith("[") and value.endswith("]"):
        items = [item.strip() for item in value[1:-1].split(",") if item.strip()]
        return f"{key}=[{','.join(_quoted(item) for item in items)}]"
    return f"{key}={_quoted(value)}"


def _quoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value
    # Backslashes count only before a quote in Hydra's grammar, and those at the end stand before the closing one.
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return "'" + escaped + "\\" * trailing + "'"


def _explain(error: Exception, name: str, overrides: Sequence[str]) -> str:
    """Hydra's complaint in one line, with the nearest thing that is allowed."""
    text = str(error)
    missing = re.search(r"Could not find '([\w-]+)/([^']*)'", text)
    if missing:
        group, wanted = missing.groups()
        return f"unknown {group} '{wanted}'.{did_you_mean(wanted, choices_of(group))}"
    rejected = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if rejected:
        known = known_keys(name)
        key = rejected[1].split("@")[0]
        near = did_you_mean(key, known)
        return (
            f"unknown key '{key}'."
            + (near.split(" Known:")[0] if "Did you mean" in near else "")
            + (
                f" Keys of {key.split('.')[0]}: {', '.join(k for k in known if k.startswith(key.split('.')[0] + '.'))}."
                if any(k.startswith(key.split(".")[0] + ".") for k in known)
                else f" Groups: {', '.join(sorted({k.split('.')[0] for k in known}))}."
            )
        )
    bare = [override for override in overrides if "=" not in override]
    if bare:
        return f"'{bare[0]}' is no setting; write key=value, as in trainer.updates=1000"
    return "cannot read the settings: " + " ".join(text.split())


def choices_of(group: str) -> list[str]:
    """The YAML files of a config group."""
    return sorted(path.stem for path in (config_dir() / group).glob("*.yaml"))


def known_keys(name: str) -> list[str]:
    """Every group, and every key that a file of one of its groups has."""
    keys: set[str] = set()
    for entry in yaml.safe_load((config_dir() / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]:
        if isinstance(entry, dict):
            (group,) = entry
            keys.add(group)
            for path in (config_dir() / group).glob("*.yaml") if group != "experiment" else ():
                keys |= {
                    f"{group}.{key}" for key in yaml.safe_load(path.read_text(encoding="utf-8")) if key != "defaults"
                }
    return sorted(keys)


def _build_groups(values: Mapping[str, Any]) -> dict[str, Any]:
    """Each group merged onto its dataclass; the complaints of all groups are raised together."""
    groups, complaints = {}, []
    for group, options in values.items():
        try:
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
    if experiment not in ("None", "null", ""):
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
