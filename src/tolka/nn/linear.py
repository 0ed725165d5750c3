"""Linear layers, single or several of one input fused into one matrix multiplication."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tolka.kernels.matmul import matmul


class Linear(nn.Linear):
    """x W^T + b."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return matmul(input, self.weight, self.bias)


class FusedLinear(Linear):
    """Several linear layers as one; its output holds theirs, of widths `widths[0]`, `widths[1]`, …, side by side."""

    # One large matrix multiplication takes less time than several small ones, which read the same input.

    def __init__(self, d_in: int, widths: Sequence[int]) -> None:
        super().__init__(d_in, sum(widths))
        self.widths = list(widths)

    def matrices(self) -> tuple[Tensor, ...]:
        """Return the weight of each layer, (widths[i], d_in), as views."""
        return torch.split(self.weight, self.widths)

    def stacked(self) -> list[Tensor]:
        """Return the parameters that stack the layers' matrices, `widths` rows each."""
        return [self.weight]
