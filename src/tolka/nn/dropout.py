"""Dropout as a layer."""

from torch import Tensor, nn

from tolka.kernels.dropout import dropout


class Dropout(nn.Dropout):
    """Dropout, active in training mode only."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        return dropout(input, self.p, self.training)
