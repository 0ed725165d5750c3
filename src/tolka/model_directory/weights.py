"""The weights of a model directory: reading, verifying and averaging them, also stored in int8.

In int8 they have a quarter of the size, and are not quantised again when the model is loaded. Each matrix that
`quantizable_layers` lists is stored as its integers, under its own name, and the scale of each of its rows, under that
name with `_scale`. All other tensors are in fp32.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from tolka.errors import CheckpointError
from tolka.kernels.quantized import Int8Matrix, supports_int8
from tolka.model_directory.file_names import CONFIG, WEIGHTS
from tolka.model_directory.verify import verified_manifest
from tolka.models.base import ModelConfig, Seq2Seq
from tolka.models.quantization import quantizable_layers, quantize

_BYTES, _INT8_BYTES = 4, 1  # per parameter in fp32, and at least in int8
# Bytes that a model may have beyond its file's size: where a few weights are missing, a later message names them.
_ROWS = 4096  # of a matrix that are looked at together
_SLACK = 64 * 2**20
_SCALE = "_scale"


def unique_tensors(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return each shared tensor once, under the first of its names, without copying."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in tensors.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            unique[name] = tensor.detach()
    return unique


def check_size(config: ModelConfig, sizes: tuple[int, int, bool], path: Path, int8: bool = False) -> None:
    """Raise CheckpointError if a configuration describes a larger model than the weights file can hold.

    sizes: as for `ModelConfig.build`. path: of the weights. int8: whether they are stored in int8.
    """
    # A directory may come from anybody: no memory is allocated for sizes that it only claims.
    size = path.stat().st_size
    needed = (_INT8_BYTES if int8 else _BYTES) * config.shapes(*sizes).parameter_count()
    if needed > size + _SLACK:
        raise CheckpointError(f"the model that it describes has {needed} bytes of weights, and {path.name} has {size}")


def load_weights(model: Seq2Seq, folder: Path) -> None:
    """Verify a directory and load its weights into a model with its configuration."""
    verified_manifest(folder)
    fill(model, folder)


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of several model directories' weights (Vaswani et al. 2017, section 6.1), summed in float64.

    They are of one configuration.
    """
    totals: dict[str, Tensor] = {}
    for folder in folders:
        verified_manifest(folder)
        for name, weight in read_finite(folder / WEIGHTS).items():
            totals[name] = totals[name] + weight.double() if name in totals else weight.double()
    return {name: (total / len(folders)).float() for name, total in totals.items()}


def read_finite(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; CheckpointError if it is damaged, or one has NaN or inf in it."""
    weights = read_tensors(path)
    if non_finite := [name for name, weight in weights.items() if not is_finite(weight)]:
        raise CheckpointError(
            f"{path}: the model's weights are not finite (NaN or inf in {len(non_finite)} of "
            f"{len(weights)} tensors, {non_finite[0]} among them): nothing can be done with it; take another checkpoint"
        )
    return weights


def is_finite(weight: Tensor) -> bool:
    """Return whether no value is NaN or inf; true of other dtypes than fp32."""
    # int8 is always finite, and `check_fit` refuses other dtypes, of which some have no isfinite (float8). Row by row,
    # to need no copy of the whole.
    return weight.dtype != torch.float32 or all(bool(part.isfinite().all()) for part in weight.split(_ROWS))


def fill(model: Seq2Seq, folder: Path) -> None:
    """Load the weights of a verified directory; CheckpointError if they do not fit the model."""
    weights, expected = read_finite(folder / WEIGHTS), unique_tensors(model.state_dict())
    check_fit(weights, expected, folder)
    for name, weight in expected.items():
        weight.copy_(weights[name])


def check_fit(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], folder: Path) -> None:
    """Raise CheckpointError if names, shapes or dtypes are not the expected ones."""
    differing = sorted(weights.keys() ^ expected.keys()) or [
        f"{name} {_shape(weights[name])} instead of {_shape(tensor)}"
        for name, tensor in expected.items()
        if _shape(weights[name]) != _shape(tensor)
    ]
    if differing:
        raise CheckpointError(
            f"{folder / WEIGHTS} does not fit {CONFIG}; {len(differing)} tensors differ: {', '.join(differing[:4])}"
        )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; CheckpointError if it is damaged."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _shape(tensor: Tensor) -> str:
    """Return the shape as (2, 3), followed by the dtype if it is not fp32."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{tuple(tensor.shape)}" + (f" {dtype}" if tensor.dtype != torch.float32 else "")


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
