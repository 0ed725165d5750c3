"""A model directory as NumPy arrays and plain values, read and verified without torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tolka.errors import CheckpointError
from tolka.model_directory.file_names import CONFIG, SCORES, WEIGHTS
from tolka.model_directory.manifest import TrainingSources, read_json, verified_manifest
from tolka.model_directory.settings import find_model_folder, read_settings
from tolka.system.package_data import config_dir
from tolka.text.tokenizer.tokenizer import Tokenizer

Array = NDArray[np.float32]
# Which embeddings have one matrix, as `tolka.models.embeddings` describes it. It is saved under one of their names.
_SHARED = {
    "all": ({"target", "source", "output"},),
    "source_target": ({"target", "source"}, {"output"}),
    "target_output": ({"target", "output"}, {"source"}),
    "source_output": ({"source", "output"}, {"target"}),
    "none": ({"target"}, {"source"}, {"output"}),
}


@dataclass(frozen=True)
class PlainModel:
    """The content of a model directory. arrays: by tolka's names, in float32. config: the training configuration."""

    folder: Path
    options: dict[str, Any]
    arrays: Mapping[str, Array]
    tokenizer: Tokenizer
    config: dict[str, Any]
    sources: TrainingSources
    scores: dict[str, Any]

    @property
    def layers(self) -> tuple[int, int]:
        """Number of layers of the encoder and of the decoder."""
        encoder = int(self.options["layers"])
        return encoder, int(self.options["decoder_layers"]) or encoder

    def array(self, name: str, *shape: int) -> Array:
        """Return an array; CheckpointError if it is missing or has another shape. A shape of none allows any."""
        if name not in self.arrays:
            raise CheckpointError(f"{self.folder / WEIGHTS} does not fit {CONFIG}: it has no tensor {name}")
        array = self.arrays[name]
        if shape and array.shape != shape:
            raise CheckpointError(
                f"{self.folder / WEIGHTS} does not fit {CONFIG}: {name} is {array.shape} instead of {shape}"
            )
        return array

    def embedding(self, kind: str, size: int) -> Array:
        """Return an embedding (size, D). kind: source, target or output."""
        sharing = str(self.options["share_embeddings"])
        if sharing == "auto":
            sharing = "all" if self.tokenizer.shared else "target_output"
        if sharing not in _SHARED:
            raise CheckpointError(f"{self.folder / CONFIG}: model.share_embeddings ({sharing}) is unknown")
        names = next(names for names in _SHARED[sharing] if kind in names)
        saved = [f"{name}_embedding.weight" for name in sorted(names) if f"{name}_embedding.weight" in self.arrays]
        return self.array(saved[0] if saved else f"{kind}_embedding.weight", size, int(self.options["d_model"]))


def read_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model options of a training configuration; options newer than it have their defaults."""
    options = {str(key): value for key, value in config["model"].items()}
    if options.get("name") != "transformer":
        return options
    defaults = yaml.safe_load((config_dir() / "model" / "transformer_small.yaml").read_text(encoding="utf-8"))
    return {**defaults, **options}


def read_plain_model(folder: Path) -> PlainModel:
    """Verify and read a model directory, or the `best/` of a run directory; CheckpointError if it is damaged."""
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    config = read_settings(folder)
    tokenizer = Tokenizer.load(folder)
    manifest.require(tokenizer.file_names)
    try:
        arrays = load_file(folder / WEIGHTS)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:  # also for a dtype that NumPy does not have
        raise CheckpointError(f"{folder / WEIGHTS} cannot be read: {error}") from None
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise CheckpointError(f"{folder / WEIGHTS}: {name} is {array.dtype} instead of float32")
        if not np.isfinite(array).all():
            raise CheckpointError(f"{folder / WEIGHTS}: the model's weights are not finite (NaN or inf in {name})")
    scores = read_json(folder / SCORES)
    return PlainModel(folder, read_options(config), arrays, tokenizer, config, manifest.sources, scores)


def sinusoids(count: int, width: int, in_halves: bool) -> Array:
    """Return sinusoidal positions (count, width), computed in float32 (Vaswani et al. 2017, section 3.5).

    in_halves: the sines first and then the cosines, as Marian has them; else by turns.
    """
    rates = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / width))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    parts = np.sin(angles), np.cos(angles)
    table = np.concatenate(parts, axis=1) if in_halves else np.stack(parts, axis=-1).reshape(count, -1)
    return np.ascontiguousarray(table[:, :width], dtype=np.float32)
