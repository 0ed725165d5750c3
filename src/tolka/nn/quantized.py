"""Linear maps in eight bits, for decoding on a CPU: weights rounded once, inputs at every call.

A weight's row w becomes round(w / s) with s = max|w| / 127, a scale of its own; inputs have one scale a call. Products
are of integers, summed up in 32 bits (dynamic quantisation; Bhandare et al. 2019 measured it on a Transformer).
"""

import warnings

import torch
from torch import Tensor, nn

from tolka.nn.feedforward import FeedForward
from tolka.nn.linear import FusedLinear

_LARGEST = 127
_SMALLEST_WIDTH = 32  # below it there is nothing to gain


def can_quantize() -> bool:
    """Whether this build of torch has kernels for it."""
    return torch.backends.quantized.engine != "none"


class QuantizedLinear(nn.Module):
    """x W^T + b with W in eight bits. widths: of the maps that stand side by side, as in `FusedLinear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None, widths: list[int], relu: bool = False) -> None:
        """weight (out, in), in fp32 on the CPU. relu: whether negative results become 0, on the way."""
        super().__init__()
        self.widths = widths
        scales = (weight.abs().amax(dim=1) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
        zeros = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():  # torch means to drop its type of such tensors; the pinned version has it
            warnings.filterwarnings("ignore", message=".*quantize_per", category=UserWarning)
            rounded = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(rounded, bias)
        self._product = torch.ops.quantized.linear_relu_dynamic if relu else torch.ops.quantized.linear_dynamic

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        result: Tensor = self._product(x, self._packed, True)
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
