"""int8 linear layers, for decoding on a CPU: weights are quantised once, inputs at every call.

A row w of the weights becomes round(w / s) with a scale s = max

w

/ 127 of its own, and so does a row of the inputs: a position's result does not depend on the others in its batch.
Products of integers are summed in 32 bits (dynamic quantisation; Bhandare et al. 2019 measured it on a Transformer).
"""

import functools
import warnings

import torch
from torch import Tensor, nn

from tolka.kernels.matmul import with_padding_rows
from tolka.nn.feedforward import ACTIVATIONS, FeedForward
from tolka.nn.linear import FusedLinear

_LARGEST = 127
_MANY = 4000  # numbers out
_TINY = 1e-30  # in place of a row's largest value where all are 0
_SMALLEST_WIDTH = 32  # below it there is nothing to gain


def supports_int8() -> bool:
    """Return whether this build of torch has int8 kernels."""
    return torch.backends.quantized.engine != "none"


@functools.cache
def has_vnni() -> bool:
    """Return whether this processor sums products of bytes in 32 bits (AVX-512 VNNI).

    Otherwise the sum of two has 16 bits, and inputs must do with seven bits.
    """
    has = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return bool(has()) and torch.backends.cpu.get_cpu_capability() == "AVX512"


def _packed(weight: Tensor, by_onednn: bool) -> torch.ScriptObject:
    """Return weight (out, in), in fp32, packed for torch's int8 kernels."""
    scales = (weight.abs().amax(dim=1) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
    zeros = torch.zeros(len(weight), dtype=torch.long)
    usual = torch.backends.quantized.engine
    with warnings.catch_warnings():  # torch means to drop its type of such tensors; the pinned version has it
        warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)
        rounded = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
    try:
        torch.backends.quantized.engine = "onednn" if by_onednn else usual
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(rounded, None)
    finally:
        torch.backends.quantized.engine = usual
    return packed


class QuantizedLinear(nn.Module):
    """x W^T + b with W in int8. widths: of the layers that are concatenated, as in `FusedLinear`.

    torch's kernel has one scale for all inputs of a call. So each row is divided by its largest absolute value first,
    and its result multiplied by it; an extra row with both ends of the range keeps the kernel's scale the same.

    A layer with many outputs uses oneDNN where the processor has VNNI: torch's usual kernel first writes the sums, four
    bytes each (256 rows, from 256 to 8000: 2.0 ms instead of 1.2; from 1024 to 32000: 55 instead of 19). oneDNN
    compiles a kernel for each number of rows, so these are rounded up.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, widths: list[int], non_negative: bool = False) -> None:
        """weight (out, in), in fp32 on the CPU. non_negative: whether all inputs are; their range is half as wide."""
        super().__init__()
        self.widths = widths
        self._few_row_counts = (
            len(weight) >= _MANY and has_vnni() and "onednn" in torch.backends.quantized.supported_engines
        )
        self._packed = _packed(weight, self._few_row_counts)
        self._non_negative, self._seven_bits = non_negative, not has_vnni()
        # The range has one value more below zero than above: so that 1, a row's largest, is a whole number of steps.
        above = 63 if self._seven_bits else 127
        self._ends = torch.zeros(1, weight.size(1))
        self._ends[0, :2] = torch.tensor([1.0, 0.0 if non_negative else -(above + 1) / above])
        self._bias = bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        rows = x.flatten(0, -2)  # (N, in)
        largest = (rows if self._non_negative else rows.abs()).amax(dim=1, keepdim=True).clamp_(min=_TINY)
        scaled = torch.cat([rows / largest, self._ends])
        if self._few_row_counts:
            scaled = with_padding_rows(scaled)
        found = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._seven_bits)[: rows.size(0)]
        found = found.mul_(largest) if self._bias is None else torch.addcmul(self._bias, found, largest)
        return found.view(*x.shape[:-1], -1)


class QuantizedScores(QuantizedLinear):
    """An int8 output layer with the interface of `TokenEmbedding`."""

    def __init__(self, pieces: nn.Embedding, bias: Tensor | None = None) -> None:
        super().__init__(pieces.weight.detach(), bias, [pieces.num_embeddings])

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V). bias: the one given at construction, which is added in any case."""
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
                non_negative = relu and name == "outer"  # what ReLU lets through
                setattr(parent, name, QuantizedLinear(child.weight.detach(), bias, widths, non_negative))
