"""The position-wise feed-forward sub-layer and its activations."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from tolka.nn.dropout import Dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = f(x W_1 + b_1) W_2 + b_2 (Vaswani et al. 2017, section 3.3), f = max(0, .) by default."""

    def __init__(self, d_model: int, d_ff: int, activation: str, rate: float) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(rate)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        result: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return result
