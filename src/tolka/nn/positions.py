"""Where a token stands, added to what it is."""

import math

import torch
from torch import Tensor, nn


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5).

    positions: (T,) integers. Returns (T, width) float32; an odd width ends on a sine.
    """
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device) * (-math.log(10000.0) / width))
    angles = positions[:, None].float() * rates  # (T, ceil(width / 2))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class SinusoidalPositions(nn.Module):
    """The fixed table, grown when a longer sentence comes; holds no weights, so a checkpoint knows no length limit."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """(length, width): the encodings of positions start .. start + length - 1, counted from 0."""
        if self.table.size(0) < start + length:
            with torch.inference_mode(False):  # first used while translating, the table must still serve training
                positions = torch.arange(max(256, 2 * (start + length)), device=self.table.device)
                self.table = sinusoids(positions, self.width)
        return self.table[start : start + length]


class LearnedPositions(nn.Module):
    """One trained vector a position, up to `limit`; positions beyond it share the last one."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(limit, width)

    def forward(self, start: int, length: int) -> Tensor:
        """(length, width): the vectors of positions start .. start + length - 1, counted from 0."""
        positions = torch.arange(start, start + length, device=self.embedding.weight.device)
        vectors: Tensor = self.embedding(positions.clamp(max=self.embedding.num_embeddings - 1))
        return vectors
