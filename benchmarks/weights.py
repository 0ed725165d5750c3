"""A tolka model's weights under names that other programs' layers go by; needs numpy, PyYAML, safetensors."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float32]
POSITIONS = 512


class Weights:
    """A pre-norm Transformer with sinusoidal positions and one matrix for source, target and output.

    Arrays are named as tolka names them; fused projections are also to be had in their parts.
    """

    def __init__(self, folder: Path) -> None:
        """ValueError for a model of another kind: the programs beside tolka have no layers for it."""
        self.options: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["model"]
        wanted: dict[str, Any] = {
            "name": "transformer",
            "norm": "pre",
            "normalization": "layernorm",
            "activation": "relu",
            "positions": "sinusoidal",
            "d_v": 0,
        }
        for key, value in wanted.items():
            if self.options[key] != value:
                raise ValueError(f"{folder}: model.{key} is {self.options[key]}; to be compared it must be {value}")
        self.arrays: dict[str, Array] = load_file(folder / "model.safetensors")
        self.embedding = self.arrays["target_embedding.weight"]
        if "source_embedding.weight" in self.arrays or "output_embedding.weight" in self.arrays:
            raise ValueError(f"{folder}: source, target and output must have one matrix to be compared")
        self.width = int(self.options["d_model"])
        self.heads = int(self.options["heads"])
        self.layers = (int(self.options["layers"]), int(self.options["decoder_layers"] or self.options["layers"]))
        self.inner = self.arrays["encoder.0.feedforward.inner.bias"].shape[0]

    def pair(self, name: str, part: int | None = None, parts: int = 1) -> tuple[Array, Array]:
        """Weight and bias of a linear map or a norm; of one part where several are fused."""
        weight, bias = self.arrays[f"{name}.weight"], self.arrays[f"{name}.bias"]
        if part is None:
            return weight, bias
        return np.split(weight, parts)[part], np.split(bias, parts)[part]

    def positions(self) -> Array:
        """(POSITIONS, D): sin and cos by turns (Vaswani et al. 2017, section 3.5)."""
        rates = np.exp(np.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        angles = np.arange(POSITIONS)[:, None] * rates
        return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(POSITIONS, -1).astype(np.float32)
