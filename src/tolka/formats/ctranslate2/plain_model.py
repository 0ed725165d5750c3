"""A model directory as NumPy arrays and plain values, read and verified without torch."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tolka.errors import CheckpointError, ConfigError
from tolka.model_directory.file_names import CONFIG, SCORES, WEIGHTS
from tolka.model_directory.settings import find_model_folder, read_settings
from tolka.model_directory.verify import TrainingSources, read_json, verified_manifest
from tolka.models.options import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.tokenizer.tokenizer import Tokenizer

Array = NDArray[np.float32]


@dataclass(frozen=True)
class PlainModel:
    """The content of a model directory. options: resolved. arrays: in float32, by tolka's names."""

    folder: Path
    options: TransformerOptions
    arrays: Mapping[str, Array]
    tokenizer: Tokenizer
    config: dict[str, Any]
    sources: TrainingSources
    scores: dict[str, Any]

    def array(self, name: str, *shape: int) -> Array:
        """Return an array; CheckpointError if it is missing or has another shape."""
        if name not in self.arrays:
            raise self._unfit(f"it has no tensor {name}")
        if self.arrays[name].shape != shape:
            raise self._unfit(f"{name} is {self.arrays[name].shape} instead of {shape}")
        return self.arrays[name]

    def check_names(self, expected: Collection[str]) -> None:
        """Raise CheckpointError if there is an array of another name."""
        if unknown := sorted(self.arrays.keys() - expected):
            raise self._unfit(f"the model has no tensor {unknown[0]}")

    def _unfit(self, reason: str) -> CheckpointError:
        return CheckpointError(f"{self.folder / WEIGHTS} does not fit {CONFIG}: {reason}")


def inexpressible_reason(options: ModelConfig) -> str:
    """Return why CTranslate2 cannot express a model with these options; "" if it can."""
    if not isinstance(options, TransformerOptions):
        name = vars(options)["name"]
        return f"model={name} is not a Transformer, and CTranslate2 translates with Transformers alone"
    if options.decoder == "ssru":
        return "CTranslate2 cannot express model.decoder=ssru: export --to marian and --to html do"
    if options.value_width != options.key_width:
        return f"CTranslate2 cannot express model.d_v={options.d_v}: values must be as wide as keys, d_model / heads"
    return ""


def read_plain_model(folder: Path) -> PlainModel:
    """Verify and read a model directory, or the `best/` of a run directory.

    CheckpointError if it is damaged; ConfigError for an option that CTranslate2 cannot express.
    """
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    config, options = read_settings(folder)
    if reason := inexpressible_reason(options):
        teach = f"mt-train recipe=distillation teacher={folder} model.leaves_to=ctranslate2 with its corpus=..."
        advice = "" if isinstance(options, TransformerOptions) else f"; {teach} teaches one by it"
        raise ConfigError(f"{folder}: {reason}{advice}")
    assert isinstance(options, TransformerOptions)
    tokenizer = Tokenizer.load(folder)
    manifest.require(tokenizer.file_names)
    try:
        options = options.resolved(tokenizer.shared)
    except ConfigError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    try:
        arrays = load_file(folder / WEIGHTS)
    # The last four come from a dtype that NumPy does not have.
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder / WEIGHTS} cannot be read: {error}") from None
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise CheckpointError(f"{folder / WEIGHTS}: {name} is {array.dtype} instead of float32")
        if not np.isfinite(array).all():
            raise CheckpointError(f"{folder / WEIGHTS}: the model's weights are not finite (NaN or inf in {name})")
    scores = read_json(folder / SCORES)
    return PlainModel(folder, options, arrays, tokenizer, config, manifest.sources, scores)


def sinusoids(count: int, width: int, kind: str) -> Array:
    """Return sinusoidal positions (count, width), computed in float32; kind: as for `tolka.nn.positions.sinusoids`."""
    if kind == "sinusoidal_fairseq":  # from position 2
        even = sinusoids(count + 2, width // 2 * 2, "sinusoidal_marian")[2:]
        return np.pad(even, ((0, 0), (0, width % 2)))
    divisor = width - 2 if kind == "sinusoidal_marian" else width
    rates = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / divisor))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    sines, cosines = np.sin(angles), np.cos(angles)
    if kind == "sinusoidal":
        table = np.stack([sines, cosines], axis=-1).reshape(count, -1)
    else:  # of an odd width, Marian has one sine less, and Hugging Face's one cosine
        table = np.concatenate([sines, cosines[:, width % 2 :] if kind == "sinusoidal_marian" else cosines], axis=1)
    return np.ascontiguousarray(table[:, :width], dtype=np.float32)
