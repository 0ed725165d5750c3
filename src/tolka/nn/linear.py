"""Linear maps, alone or several of one input as one matrix product."""

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
    """One product in place of several; its result holds those of width `widths[0]`, `widths[1]`, … side by side."""

    def __init__(self, d_in: int, widths: Sequence[int]) -> None:
        super().__init__(d_in, sum(widths))
        self.widths = list(widths)

    def matrices(self) -> tuple[Tensor, ...]:
        """The weights of each map, (widths[i], d_in): views."""
        views: tuple[Tensor, ...] = torch.split(self.weight, self.widths)
        return views

    def stacked(self) -> list[Tensor]:
        """Parameters in which the maps stand below each other, `widths` rows each."""
        return [self.weight]
