"""The weights of a model as bytes for src/tolka/page/model.js, in fp32 or with matrices in int8."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, int8

from tolka.errors import ConfigError
from tolka.kernels.quantized import Int8Matrix
from tolka.models.options import ModelConfig
from tolka.models.rnn import RnnConfig
from tolka.models.rnn.options import OWN_CELLS
from tolka.models.transformer import TransformerConfig

DTYPES = ("int8", "fp32")
_ALIGNMENT = 16  # bytes, and values of a row: one turn of the kernels' loop takes as many
_SMALLEST_WIDTH = 32  # rows and columns of a matrix; below, int8 saves hardly anything
_SCALE = "_scale"  # ends the names of scales in a model directory in int8


def check_expressible(options: ModelConfig, name: str) -> None:
    """Raise ConfigError for an architecture or a cell that the page's runtime does not compute. name: of the model."""
    cell = options.cell if isinstance(options, RnnConfig) else ""
    if type(options) not in (TransformerConfig, RnnConfig) or cell not in ("", *OWN_CELLS):
        raise ConfigError(
            f"{name}: a page cannot compute model={vars(options)['name']}{cell and f' with model.cell={cell}'}; it can "
            f"the Transformer with all of its options, and recurrent models with model.cell={', '.join(OWN_CELLS)}"
        )


def pack_weights(tensors: Mapping[str, Tensor], dtype: str) -> tuple[list[dict[str, Any]], bytes]:
    """Return where each tensor is, as model.js reads it, and the bytes of all of them.

    tensors: as in a model directory, where some may be in int8. dtype: of `DTYPES`, for matrices in fp32. Rows of
    matrices are filled with zeros to a multiple of 16 values.
    """
    listed, content = list[dict[str, Any]](), bytearray()

    def add(array: NDArray[Any]) -> int:
        if array.ndim == 2:
            array = np.pad(array, ((0, 0), (0, -array.shape[1] % _ALIGNMENT)))
        content.extend(bytes(-len(content) % _ALIGNMENT))
        offset = len(content)
        content.extend(array.astype(array.dtype.newbyteorder("<")).tobytes())
        return offset

    for name, tensor in tensors.items():
        if name.endswith(_SCALE) and name.removesuffix(_SCALE) in tensors:
            continue
        about: dict[str, Any] = {"name": name, "shape": list(tensor.shape), "dtype": "fp32"}
        if tensor.dtype == int8:
            matrix = Int8Matrix(tensor, tensors[name + _SCALE])
        elif dtype == "int8" and tensor.ndim == 2 and min(tensor.shape) >= _SMALLEST_WIDTH:
            matrix = Int8Matrix.of(tensor)
        else:
            listed.append({**about, "offset": add(tensor.numpy().astype(np.float32))})
            continue
        offset, scales = add(matrix.values.numpy()), add(matrix.scales.numpy().astype(np.float32))
        listed.append({**about, "dtype": "int8", "offset": offset, "scales": scales})
    return listed, bytes(content)
