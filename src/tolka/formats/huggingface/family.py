"""Families of models in Hugging Face's format, and the contents of their folders."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from tolka.errors import CheckpointError
from tolka.formats.huggingface.folder import ModelFolder
from tolka.model_directory.read import SavedModel
from tolka.model_directory.verify import TrainingSources
from tolka.model_directory.weights import unique_tensors
from tolka.models.options import ModelConfig
from tolka.nn.initialization import SkipInitialization
from tolka.options.registry import Registry
from tolka.text.cleaning.steps import CleaningConfig
from tolka.text.direction import UNDETERMINED, Direction
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.tokenizer import Tokenizer, TokenizerConfig
from tolka.version import __version__

CONFIG, TOKENIZER_CONFIG, GENERATION_CONFIG = "config.json", "tokenizer_config.json", "generation_config.json"
Fill = Callable[[Mapping[str, Tensor]], None]
"""Writes all weights of a model, each shared one once, into its tensors; these are on the CPU, in fp32."""
LANGUAGE = re.compile(r"[\w+-]{1,40}")


class Family(ABC):
    """Maps a family's config, tensors and tokenizer to ours and back; the parity gate compares the translations.

    It is registered by the `model_type` of config.json, or by "model_type/tokenizer_class" if models of one type have
    several tokenizers. A new family is one file in this package, or one that `plugins=` names.
    """

    NAME: ClassVar[str]
    """Name in messages, as in "Hugging Face's Marian"."""
    PROGRAM: ClassVar[str] = "Hugging Face's "
    """Whose format it is, in messages."""
    MODEL: ClassVar[str] = ""
    TOKENIZER: ClassVar[str] = ""
    """The classes of `transformers` that the gate compares with; "" if it has none for the family."""
    TOKENIZER_FILES: ClassVar[tuple[str, ...]] = ()
    TOKENIZER_KEYS: ClassVar[tuple[str, ...]] = ()
    """The tokenizer's files of a folder that the gate gives them, and the settings of tokenizer_config.json."""

    @abstractmethod
    def read(self, folder: ModelFolder, config: Mapping[str, Any], about: Mapping[str, Any]) -> "Foreign":
        """Return the content of a folder besides the weights; CheckpointError for what does not fit.

        config: of config.json. about: of tokenizer_config.json, empty if it is missing.
        """

    @abstractmethod
    def weights(self, foreign: "Foreign") -> "Fill":
        """Compare the folder's tensors with `foreign.options`; return a function that reads them into our model's.

        It reads tensor by tensor, so that no second model is in memory. CheckpointError where they do not fit.
        """

    @abstractmethod
    def files(self, saved: SavedModel, options: ModelConfig) -> dict[str, Any]:
        """Return the files of a folder besides the weights: name -> bytes, or the object of a JSON file.

        options: of the model, resolved. ConfigError, with the settings that would fit, if the family cannot express it.
        """

    @abstractmethod
    def tensors(self, saved: SavedModel, options: ModelConfig) -> dict[str, Tensor]:
        """Return the weights, as the family names them."""

    def compared_files(self, foreign: "Foreign") -> dict[str, Any]:
        """Return the tokenizer's files that the gate gives them where the folder lacks them: name -> JSON object."""
        return {}

    def compared_config(self, foreign: "Foreign", positions: int) -> dict[str, Any]:
        """Return the config.json that the gate gives them, for texts of at most `positions` tokens.

        It has only settings of this family, since others could name files to read or models to download.
        """
        return {}


FAMILIES: Registry[Family] = Registry(
    "family",
    "tolka.formats.huggingface",
    without=("bart_layers", "family", "folder", "m2m_100_tokenizer", "nllb_tokenizer"),
)


@dataclass(frozen=True)
class Foreign:
    """The content of a folder besides the weights.

    about: of tokenizer_config.json. longest: most subwords of a source. direction: None if the folder does not name it.
    """

    family: Family
    folder: ModelFolder
    config: Mapping[str, Any]
    about: Mapping[str, Any]
    options: ModelConfig
    tokenizer: Tokenizer
    longest: int
    direction: Direction | None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a model directory's config.yaml would have."""
        direction = self.direction or Direction(UNDETERMINED, UNDETERMINED)
        return {
            "run": {"name": self.folder.name},
            "corpus": direction._asdict(),
            "cleaning": asdict(CleaningConfig()),
            "tokenizer": asdict(_tokenizer_options(self.tokenizer)),
            "model": asdict(self.options),
        }

    def load(self) -> SavedModel:
        """Build the model, and read its weights; CheckpointError if they do not fit each other."""
        tokenizer, settings = self.tokenizer, self.settings
        fill = self.family.weights(self)
        # Memory that nothing is written to takes no space yet.
        with SkipInitialization():
            model = self.options.build(tokenizer.source_size, tokenizer.target_size, tokenizer.shared)
        fill(unique_tensors(model.state_dict()))
        several = tokenizer.languages and not self.direction
        facts = {
            "languages": f"{len(tokenizer.languages)} languages" if several else str(Direction(**settings["corpus"])),
            "architecture": f"{self.family.NAME}'s {model.architecture}, {model.parameter_count():,} parameters",
            "imported from": f"a folder of {self.family.PROGRAM}{self.family.NAME}, {self.folder.name}",
            "tolka": __version__,
        }
        sources = TrainingSources(self.longest)
        return SavedModel(self.folder.path, model.eval(), tokenizer, settings, sources, {"facts": facts})


def read_foreign(path: Path) -> Foreign:
    """Read a folder of one of `FAMILIES` but for its weights; CheckpointError for what is missing or does not fit."""
    folder = ModelFolder(path)
    if not folder.has(CONFIG):
        marian = "is not of Marian: it has neither decoder.yml, nor a model.npz or model.bin beside a vocabulary"
        raise CheckpointError(f"{path} lacks its file {CONFIG}, as Hugging Face's models have it, and {marian}")
    config = folder.json(CONFIG)
    about = folder.json(TOKENIZER_CONFIG) if folder.has(TOKENIZER_CONFIG) else {}
    model_type = str(config.get("model_type"))
    for key in (f"{model_type}/{about.get('tokenizer_class')}", model_type):
        if key in FAMILIES.names():
            return FAMILIES.get(key)().read(folder, config, about)
    types = [name for name in FAMILIES.names() if "/" not in name]
    known = ", ".join(f"{name} ({FAMILIES.get(name).MODEL or FAMILIES.get(name).NAME})" for name in types)
    raise CheckpointError(
        f"{path / CONFIG}: the architecture is {config.get('model_type')!r:.80} (model_type), and only Hugging Face's "
        f"{known} can be imported"
    )


def whole_number(config: Mapping[str, Any], key: str, where: str) -> int:
    """Return a whole number of a `config.json`; CheckpointError if it is missing or something else."""
    value = config.get(key)  # by exact type, since True is an int as well
    if type(value) is not int or not 0 <= value < 2**31:
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be a whole number below 2^31")
    return value


def boolean(config: Mapping[str, Any], key: str, default: bool, where: str) -> bool:
    """Return a truth value of a `config.json`; CheckpointError if it is something else."""
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be true or false")
    return value


def rate(config: Mapping[str, Any], key: str, where: str) -> float:
    """Return a rate of a `config.json`, 0 where it is missing; CheckpointError if it is something else."""
    value = config.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise CheckpointError(f"{where}: {key} ({value!r:.80}) must be a number, at least 0 and below 1")
    return float(value)


def _tokenizer_options(tokenizer: Tokenizer) -> TokenizerConfig:
    """Return options that describe the tokenizer, for config.yaml."""
    spec = model_proto(tokenizer.models[0]).trainer_spec
    kinds = {spec.UNIGRAM: "unigram", spec.BPE: "bpe", spec.WORD: "word", spec.CHAR: "char"}
    fallback = bool(spec.byte_fallback)
    # Within the limits of TokenizerConfig, which are those of tokenizers to train.
    size = min(max(tokenizer.target_size, 300 if fallback else 50), 1_000_000)
    return TokenizerConfig(
        type=kinds[spec.model_type], vocab_size=size, shared=tokenizer.shared, byte_fallback=fallback
    )
