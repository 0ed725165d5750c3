"""Weights stored in int8: a quarter of the size, and not quantised again when the model is loaded.

Each matrix that `quantizable_layers` lists is stored as its integers, under its own name, and the scale of each of its
rows, under that name with `_scale`. All other tensors are in fp32.
"""

from pathlib import Path

import torch
from torch import Tensor

from tolka.errors import CheckpointError
from tolka.kernels.quantized import Int8Matrix, supports_int8
from tolka.model_directory.file_names import WEIGHTS
from tolka.model_directory.weights import check_fit, read_finite, unique_tensors
from tolka.models.base import Seq2Seq
from tolka.models.quantization import quantizable_layers, quantize

_SCALE = "_scale"


def int8_tensors(model: Seq2Seq) -> dict[str, Tensor]:
    """Return the tensors to store, of a model in fp32 on the CPU."""
    tensors = unique_tensors(model.state_dict())
    for layer in quantizable_layers(model):
        (name,) = tensors.keys() & set(layer.weight_names)
        matrix = Int8Matrix.of(tensors[name])
        tensors[name], tensors[name + _SCALE] = matrix.values, matrix.scales
    return tensors


def fill_int8(model: Seq2Seq, folder: Path) -> None:
    """Load the weights of a verified directory into a model, whose layers become int8 layers.

    CheckpointError if they do not fit the model, or if this build of torch has no int8 multiplication.
    """
    if not supports_int8():
        raise CheckpointError(f"{folder} has its weights in int8, and this build of torch has no int8 multiplication")
    weights, expected = read_finite(folder / WEIGHTS), unique_tensors(model.state_dict())
    for layer in quantizable_layers(model):
        (name,) = expected.keys() & set(layer.weight_names)
        expected[name + _SCALE] = torch.empty(len(expected[name]))
        expected[name] = torch.empty_like(expected[name], dtype=torch.int8)
    check_fit(weights, expected, folder)
    quantized = [name for name, tensor in expected.items() if tensor.dtype == torch.int8]
    matrices = {name: Int8Matrix(weights.pop(name), weights.pop(name + _SCALE)) for name in quantized}
    model.load_state_dict(weights, strict=False)
    quantize(model, matrices)
