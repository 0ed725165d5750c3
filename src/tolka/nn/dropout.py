"""Dropout as a layer."""

from torch import Tensor, nn

from tolka.kernels.dropout import dropout


class Dropout(nn.Module):
    """Dropout, active in training mode only."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to x of any shape."""
        return dropout(x, self.rate, self.training)
