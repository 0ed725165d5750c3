"""The position-wise feed-forward sub-layer and its activations."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.kernels.matmul import matmul_relu
from tolka.nn.dropout import Dropout
from tolka.nn.linear import FusedLinear, Linear


def swiglu(x: Tensor) -> Tensor:
    """(..., 2F) -> (..., F): silu of the first half times the second."""
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


# ReLU works in place: its gradient is computed from its result.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "gelu": F.gelu,
    "swish": F.silu,
    "swiglu": swiglu,
}


class FeedForward(nn.Module):
    """FFN(x) = f(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, section 3.3), f = max(0, .) by default.

    SwiGLU: FFN(x) = (silu(x W + b) * (x V + c)) W_2 + b_2 (Shazeer 2020, equation 6, with biases like the others).
    """

    def __init__(self, d_model: int, d_ff: int, activation: str, rate: float) -> None:
        super().__init__()
        # SwiGLU has two inner matrices, W and V: one multiplication computes both.
        self.inner = FusedLinear(d_model, [d_ff] * (2 if activation == "swiglu" else 1))
        self.outer = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(rate)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        if self.activation is torch.relu_ and type(self.inner) is FusedLinear:
            return self.outer(self.dropout(matmul_relu(x, self.inner.weight, self.inner.bias)))
        return self.outer(self.dropout(self.activation(self.inner(x))))
