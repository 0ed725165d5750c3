"""Linear layers and embeddings in int8, for decoding on a CPU: weights are quantised once, inputs at every call.

A row w of the weights becomes round(w / s) with a scale of its own, s = max|w| / 127, and so does a row of the inputs:
a position's result does not depend on the others in its batch. Integer products are summed in 32 bits (dynamic
quantisation; Bhandare et al. 2019 measured it on a Transformer).
"""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tolka.kernels.matmul import with_padding_rows

_MAX_INT8 = 127
# From which oneDNN is used.
_MANY_OUTPUTS = 4000
# In place of a row's largest value where all are 0: a scale is divided by.
_TINY = 1e-30


def supports_int8() -> bool:
    """Return whether this build of torch has int8 kernels."""
    return torch.backends.quantized.engine != "none"


@functools.cache
def has_vnni() -> bool:
    """Return whether this processor sums int8 products in 32 bits (AVX-512 VNNI)."""
    # Without, pairs of products are summed in 16 bits, which two products of 8 bits overflow: inputs get 7 bits then.
    has = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return bool(has()) and torch.backends.cpu.get_cpu_capability() == "AVX512"


class Int8Matrix(NamedTuple):
    """A matrix in int8: row i is scales[i] * values[i]. values (out, in), int8, -127 to 127; scales (out,), fp32."""

    values: Tensor
    scales: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> "Int8Matrix":
        """Quantise a matrix (out, in), in fp32 on the CPU."""
        # A scale for each row: a single large weight costs the precision of its own row alone.
        scales = (matrix.abs().amax(dim=1) / _MAX_INT8).clamp(min=torch.finfo(torch.float32).tiny)
        with _without_deprecation():
            rounded = torch.quantize_per_channel(matrix, scales.double(), _zeros(scales), 0, torch.qint8)
        return cls(rounded.int_repr(), scales)

    def rows(self, ids: Tensor) -> Tensor:
        """(...) -> (..., in), the rows with these numbers, in fp32."""
        return self.values[ids].float() * self.scales[ids].unsqueeze(-1)

    def packed(self, by_onednn: bool) -> torch.ScriptObject:
        """Return the matrix as torch's int8 kernels take it."""
        default_engine = torch.backends.quantized.engine
        with _without_deprecation():
            tensor = torch._make_per_channel_quantized_tensor(self.values, self.scales.double(), _zeros(self.scales), 0)
        try:
            torch.backends.quantized.engine = "onednn" if by_onednn else default_engine
            packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(tensor, None)
        finally:
            torch.backends.quantized.engine = default_engine
        return packed


def _zeros(scales: Tensor) -> Tensor:
    return torch.zeros(len(scales), dtype=torch.long)


@contextmanager
def _without_deprecation() -> Iterator[None]:
    """torch deprecates quantised tensors; the pinned version has them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)
        yield


class QuantizedLinear(nn.Module):
    """x W^T + b with W in int8. widths: of the layers fused into it, as in `FusedLinear`."""

    def __init__(self, weight: Int8Matrix, bias: Tensor | None, widths: list[int], non_negative: bool = False) -> None:
        """non_negative: whether all inputs are, which halves their range."""
        super().__init__()
        self.widths = widths
        # torch's default kernel first writes the 32-bit sums: 256 rows, 256 -> 8000, 2.0 ms instead of oneDNN's 1.2;
        # 1024 -> 32000, 55 instead of 19.
        self._by_onednn = (
            len(weight.values) >= _MANY_OUTPUTS
            and has_vnni()
            and "onednn" in torch.backends.quantized.supported_engines
        )
        self._packed = weight.packed(self._by_onednn)
        self._non_negative, self._seven_bits = non_negative, not has_vnni()
        # One value more below zero than above, so that 1, the largest scaled value, is a whole number of steps.
        above = 63 if self._seven_bits else 127
        self._range_row = torch.zeros(1, weight.values.size(1))
        self._range_row[0, :2] = torch.tensor([1.0, 0.0 if non_negative else -(above + 1) / above])
        self._bias = bias

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., in) -> (..., out). bias: (out,), of a layer that has none."""
        bias = self._bias if bias is None else bias
        rows = x.flatten(0, -2)  # (N, in)
        # torch's kernel has one scale for all inputs of a call: so each row is divided by its largest value here, and a
        # last row with both ends of the range keeps the kernel's scale constant.
        largest = (rows if self._non_negative else rows.abs()).amax(dim=1, keepdim=True).clamp_(min=_TINY)
        scaled = torch.cat([rows / largest, self._range_row])
        # oneDNN compiles a kernel for each number of rows.
        if self._by_onednn:
            scaled = with_padding_rows(scaled)
        try:
            result = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._seven_bits)[: rows.size(0)]
        # The kernel has no range for a NaN, which passes through here as it does through fp32.
        except RuntimeError:
            if bool(rows.isfinite().all()):
                raise
            result = rows.new_full((rows.size(0), sum(self.widths)), torch.nan)
        # Each row times what it was divided by.
        result = result.mul_(largest) if bias is None else torch.addcmul(bias, result, largest)
        return result.view(*x.shape[:-1], -1)


class QuantizedEmbedding(nn.Module):
    """One vector per subword in int8, used as input embedding, output layer or both, as a `TokenEmbedding` is."""

    def __init__(self, weight: Int8Matrix, is_output: bool) -> None:
        """weight (V, D). is_output: whether `scores` is called; torch's kernel then has a copy of the weights."""
        super().__init__()
        self._weight = weight
        self._layer = QuantizedLinear(weight, None, [len(weight.values)]) if is_output else None

    def forward(self, ids: Tensor) -> Tensor:
        """(...) -> (..., D)."""
        return self._weight.rows(ids)

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V): the dot products with all vectors, plus a bias (V,)."""
        assert self._layer is not None
        return self._layer(features, bias)
