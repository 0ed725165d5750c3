"""Linear layers in int8, for decoding on a CPU: weights are quantised once, inputs at every call.

A row w of the weights becomes round(w / s) with a scale of its own, s = max|w| / 127, and so does a row of the inputs:
a position's result does not depend on the others in its batch. Integer products are summed in 32 bits (dynamic
quantisation; Bhandare et al. 2019 measured it on a Transformer).
"""

import functools
import warnings

import torch
from torch import Tensor, nn

from tolka.kernels.matmul import with_padding_rows
from tolka.nn.feedforward import ACTIVATIONS, FeedForward
from tolka.nn.linear import FusedLinear

_MAX_INT8 = 127
_MANY_OUTPUTS = 4000  # from which oneDNN is used
_TINY = 1e-30  # in place of a row's largest value where all are 0
_SMALLEST_WIDTH = 32  # below it int8 is no faster


def supports_int8() -> bool:
    """Return whether this build of torch has int8 kernels."""
    return torch.backends.quantized.engine != "none"


@functools.cache
def has_vnni() -> bool:
    """Return whether this processor sums int8 products in 32 bits (AVX-512 VNNI).

    Without, pairs of products are summed in 16 bits, and inputs are quantised to 7 bits.
    """
    has = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return bool(has()) and torch.backends.cpu.get_cpu_capability() == "AVX512"


def _quantize_and_pack(weight: Tensor, by_onednn: bool) -> torch.ScriptObject:
    """Quantise weight (out, in), in fp32, and pack it for torch's int8 kernels."""
    scales = (weight.abs().amax(dim=1) / _MAX_INT8).clamp(min=torch.finfo(torch.float32).tiny)
    zeros = torch.zeros(len(weight), dtype=torch.long)
    default_engine = torch.backends.quantized.engine
    with warnings.catch_warnings():  # torch deprecates quantised tensors; the pinned version has them
        warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)
        rounded = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
    try:
        torch.backends.quantized.engine = "onednn" if by_onednn else default_engine
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(rounded, None)
    finally:
        torch.backends.quantized.engine = default_engine
    return packed


class QuantizedLinear(nn.Module):
    """x W^T + b with W in int8. widths: of the layers fused into it, as in `FusedLinear`.

    torch's kernel has one scale for all inputs of a call. So each row is divided by its largest absolute value first,
    and its result multiplied by it; an extra last row with both ends of the range keeps the kernel's scale constant.

    A layer with many outputs is computed by oneDNN where the processor has VNNI: torch's default kernel first writes
    the 32-bit sums (256 rows, 256 -> 8000: 2.0 ms instead of 1.2; 1024 -> 32000: 55 instead of 19). oneDNN compiles a
    kernel for each number of rows, so row counts are rounded up.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, widths: list[int], non_negative: bool = False) -> None:
        """weight (out, in), in fp32 on the CPU. non_negative: whether all inputs are, which halves their range."""
        super().__init__()
        self.widths = widths
        self._by_onednn = (
            len(weight) >= _MANY_OUTPUTS and has_vnni() and "onednn" in torch.backends.quantized.supported_engines
        )
        self._packed = _quantize_and_pack(weight, self._by_onednn)
        self._non_negative, self._seven_bits = non_negative, not has_vnni()
        # One value more below zero than above, so that 1, the largest scaled value, is a whole number of steps.
        above = 63 if self._seven_bits else 127
        self._range_row = torch.zeros(1, weight.size(1))
        self._range_row[0, :2] = torch.tensor([1.0, 0.0 if non_negative else -(above + 1) / above])
        self._bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = x.flatten(0, -2)  # (N, in)
        largest = (rows if self._non_negative else rows.abs()).amax(dim=1, keepdim=True).clamp_(min=_TINY)
        scaled = torch.cat([rows / largest, self._range_row])
        if self._by_onednn:
            scaled = with_padding_rows(scaled)
        result = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._seven_bits)[: rows.size(0)]
        result = result.mul_(largest) if self._bias is None else torch.addcmul(self._bias, result, largest)
        return result.view(*x.shape[:-1], -1)


class QuantizedOutputLayer(QuantizedLinear):
    """Output layer in int8, in place of a `TokenEmbedding`."""

    def __init__(self, embedding: nn.Embedding, bias: Tensor | None = None) -> None:
        super().__init__(embedding.weight.detach(), bias, [embedding.num_embeddings])

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V). bias: not read; the layer adds the bias that it was built with."""
        scores: Tensor = self(features)
        return scores


def quantize_linear_layers(model: nn.Module) -> None:
    """Replace all but the smallest linear layers by int8 ones, for decoding only: they cannot be trained."""
    for parent in list(model.modules()):
        relu = isinstance(parent, FeedForward) and parent.activation is ACTIVATIONS["relu"]
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and min(child.weight.shape) >= _SMALLEST_WIDTH:
                widths = child.widths if isinstance(child, FusedLinear) else [child.out_features]
                bias = None if child.bias is None else child.bias.detach()
                non_negative = relu and name == "outer"  # its input is ReLU's output
                setattr(parent, name, QuantizedLinear(child.weight.detach(), bias, widths, non_negative))
