"""A model directory as NumPy arrays and plain values, read and verified without torch."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tolka.errors import CheckpointError, ConfigError, TolkaError
from tolka.model_directory.file_names import CONFIG, SCORES, WEIGHTS
from tolka.model_directory.manifest import TrainingSources, read_json, verified_manifest
from tolka.model_directory.settings import find_model_folder, read_settings
from tolka.options.checks import at_least, share_below_one, zero_or_more
from tolka.options.parsing import build
from tolka.system.package_data import config_dir
from tolka.tokenizer.tokenizer import Tokenizer

Array = NDArray[np.float32]
# Which embeddings have one matrix, as `tolka.models.embeddings` describes it. It is saved under one of their names.
_SHARED = {
    "all": ({"target", "source", "output"},),
    "source_target": ({"target", "source"}, {"output"}),
    "target_output": ({"target", "output"}, {"source"}),
    "source_output": ({"source", "output"}, {"target"}),
    "none": ({"target"}, {"source"}, {"output"}),
}
_OF_TWO_VOCABULARIES = ("target_output", "none")


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

    @property
    def inner_width(self) -> int:
        """Inner width of the feed-forward sub-layer, as `tolka.nn.feedforward` derives it."""
        width = int(self.options["d_model"])
        return int(self.options["d_ff"]) or (
            8 * -(-width // 3) if self.options["activation"] == "swiglu" else 4 * width
        )

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

    def embedding_name(self, kind: str) -> str:
        """Return the name of an embedding's array (V, D). kind: source, target or output."""
        sharing, shared = str(self.options["share_embeddings"]), self.tokenizer.shared
        if sharing == "auto":
            sharing = "all" if shared else "target_output"
        if sharing not in _SHARED:
            raise CheckpointError(f"{self.folder / CONFIG}: model.share_embeddings ({sharing}) is unknown")
        if not shared and sharing not in _OF_TWO_VOCABULARIES:
            raise CheckpointError(
                f"{self.folder / CONFIG}: model.share_embeddings={sharing} needs one vocabulary, and there are two"
            )
        names = next(names for names in _SHARED[sharing] if kind in names)
        saved = [f"{name}_embedding.weight" for name in sorted(names) if f"{name}_embedding.weight" in self.arrays]
        return saved[0] if saved else f"{kind}_embedding.weight"


def read_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model options of a training configuration; options newer than it have their defaults.

    ConfigError, as `TransformerOptions` raises it, for a Transformer's options that are unknown or not valid.
    """
    options = {str(key): value for key, value in config["model"].items()}
    if options.get("name") != "transformer":
        return options
    # The dataclass itself takes torch; its defaults, and so the types of its fields, are also in a file.
    defaults = yaml.safe_load((config_dir() / "model" / "transformer_small.yaml").read_text(encoding="utf-8"))
    defaults |= {"d_v": 0, "max_positions": 512, "scale_embeddings": True}  # of models alone, and in no file
    kind: Any = make_dataclass("Options", [(key, type(value), value) for key, value in defaults.items()])
    checked = build(kind, options, "model")
    at_least(checked, "model", 1, "d_model", "heads", "layers", "max_positions")
    zero_or_more(checked, "model", "follow the others", "d_v", "d_ff", "decoder_layers")
    if checked.d_model % checked.heads:
        raise ConfigError(f"model.d_model ({checked.d_model}) must be a multiple of model.heads ({checked.heads})")
    if checked.positions == "rotary" and checked.d_model // checked.heads % 2:
        raise ConfigError(
            "model.positions=rotary rotates pairs of values: model.d_model / model.heads "
            f"({checked.d_model} / {checked.heads} = {checked.d_model // checked.heads}) must be even"
        )
    share_below_one(checked, "model", "dropout", "attention_dropout", "activation_dropout")
    return dict(vars(checked))


def options_of(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model options as `read_options` does; CheckpointError, with the file's name, if they are not valid."""
    try:
        return read_options(config)
    except TolkaError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None


def read_plain_model(folder: Path) -> PlainModel:
    """Verify and read a model directory, or the `best/` of a run directory; CheckpointError if it is damaged."""
    folder = find_model_folder(folder)
    manifest = verified_manifest(folder)
    config = read_settings(folder)
    options = options_of(folder, config)
    tokenizer = Tokenizer.load(folder)
    manifest.require(tokenizer.file_names)
    try:
        arrays = load_file(folder / WEIGHTS)
    # The last four are for a dtype that NumPy does not have.
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder / WEIGHTS} cannot be read: {error}") from None
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise CheckpointError(f"{folder / WEIGHTS}: {name} is {array.dtype} instead of float32")
        if not np.isfinite(array).all():
            raise CheckpointError(f"{folder / WEIGHTS}: the model's weights are not finite (NaN or inf in {name})")
    scores = read_json(folder / SCORES)
    return PlainModel(folder, options, arrays, tokenizer, config, manifest.sources, scores)


def sinusoids(count: int, width: int, in_halves: bool) -> Array:
    """Return sinusoidal positions (count, width), computed in float32 (Vaswani et al. 2017, section 3.5).

    in_halves: the sines first and then the cosines, as Marian has them; else by turns.
    """
    rates = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / width))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    parts = np.sin(angles), np.cos(angles)
    table = np.concatenate(parts, axis=1) if in_halves else np.stack(parts, axis=-1).reshape(count, -1)
    return np.ascontiguousarray(table[:, :width], dtype=np.float32)
