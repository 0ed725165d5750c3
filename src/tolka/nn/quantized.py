"""Linear maps in eight bits, for decoding on a CPU: weights rounded once, inputs at every call.

A weight's row w becomes round(w / s) with s = max|w| / 127, a scale of its own; inputs have one scale a call. Products
are of integers, summed up in 32 bits (dynamic quantisation; Bhandare et al. 2019 measured it on a Transformer).
"""

import functools
import warnings

import torch
from torch import Tensor, nn

from tolka.nn.feedforward import FeedForward
from tolka.nn.linear import FusedLinear
from tolka.nn.products import of_steady_rows

_LARGEST = 127
_MANY = 4000  # numbers out
_SMALLEST_WIDTH = 32  # below it there is nothing to gain


def can_quantize() -> bool:
    """Whether this build of torch has kernels for it."""
    return torch.backends.quantized.engine != "none"


@functools.cache
def sums_of_bytes() -> bool:
    """Whether this processor adds up products of bytes in 32 bits (AVX-512's VNNI); without, the sum of two has 16, and
    inputs must do with seven bits."""
    has = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return bool(has()) and torch.backends.cpu.get_cpu_capability() == "AVX512"


def _packed(weight: Tensor, bias: Tensor | None, by_onednn: bool) -> torch.ScriptObject:
    """weight (out, in), in fp32, as torch's kernels for eight bits want it."""
    scales = (weight.abs().amax(dim=1) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
    zeros = torch.zeros(len(weight), dtype=torch.long)
    usual = torch.backends.quantized.engine
    with warnings.catch_warnings():  # torch means to drop its type of such tensors; the pinned version has it
        warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)
        rounded = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
    try:
        torch.backends.quantized.engine = "onednn" if by_onednn else usual
        packed: torch.ScriptObject = torch.ops.quantized.linear_prepack(rounded, bias)
    finally:
        torch.backends.quantized.engine = usual
    return packed


class QuantizedLinear(nn.Module):
    """x W^T + b with W in eight bits. widths: of the maps that stand side by side, as in `FusedLinear`.

    A map to many numbers is oneDNN's where the processor has sums of bytes: torch's usual kernel first writes the sums,
    four bytes each (256 rows, from 256 to 8000: 2.0 ms instead of 1.2; from 1024 to 32000: 55 instead of 19). oneDNN
    prepares itself for each number of rows, so that there are few of them.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, widths: list[int], relu: bool = False) -> None:
        """weight (out, in), in fp32 on the CPU. relu: whether negative results become 0, on the way."""
        super().__init__()
        self.widths = widths
        self._steady = (
            len(weight) >= _MANY and sums_of_bytes() and "onednn" in torch.backends.quantized.supported_engines
        )
        self._packed = _packed(weight, bias, self._steady)
        self._product = torch.ops.quantized.linear_relu_dynamic if relu else torch.ops.quantized.linear_dynamic

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        if self._steady:
            return of_steady_rows(self._multiplied, x)
        return self._multiplied(x)

    def _multiplied(self, x: Tensor) -> Tensor:
        result: Tensor = self._product(x, self._packed, not sums_of_bytes())
        return result


class QuantizedScores(QuantizedLinear):
    """An output layer: see `Pieces.scores`."""

    def __init__(self, pieces: nn.Embedding, bias: Tensor | None = None) -> None:
        super().__init__(pieces.weight.detach(), bias, [pieces.num_embeddings])

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V). bias: the one that it was made with, which it adds of itself."""
        scores: Tensor = self(features)
        return scores


def quantize(model: nn.Module) -> None:
    """Put its linear layers in eight bits, but for the smallest. For decoding alone: nothing can be trained then."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and min(child.weight.shape) >= _SMALLEST_WIDTH:
                widths = child.widths if isinstance(child, FusedLinear) else [child.out_features]
                bias = None if child.bias is None else child.bias.detach()
                relu = isinstance(parent, FeedForward) and child is parent.inner and parent.hand_over_relu()
                setattr(parent, name, QuantizedLinear(child.weight.detach(), bias, widths, relu))
