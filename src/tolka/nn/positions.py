"""Positional encodings: added to embeddings, or rotating queries and keys."""

import math

import torch
from torch import Tensor, nn


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5).

    positions: (T,) integers. Returns (T, width) float32; an odd width ends on a sine.
    """
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device) * (-math.log(10000.0) / width))
    angles = positions[:, None].float() * rates  # (T, ceil(width / 2))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class SinusoidalPositions(nn.Module):
    """The fixed table, extended when a longer sentence comes; it has no weights, so that there is no length limit."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """(length, width): the encodings of positions start .. start + length - 1, counted from 0."""
        return self._upto(start + length)[start:]

    def _upto(self, length: int) -> Tensor:
        if self.table.size(0) < length:
            with torch.inference_mode(False):  # first used while translating, the table must still serve training
                positions = torch.arange(max(256, 2 * length), device=self.table.device)
                self.table = sinusoids(positions, self.width).to(self.table.dtype)
        return self.table[:length]


class LearnedPositions(nn.Module):
    """One trained vector per position, up to `limit`; later positions share the last one."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(limit, width)

    def forward(self, start: int, length: int) -> Tensor:
        """(length, width): the vectors of positions start .. start + length - 1, counted from 0."""
        positions = torch.arange(start, start + length, device=self.embedding.weight.device)
        vectors: Tensor = self.embedding(positions.clamp(max=self.embedding.num_embeddings - 1))
        return vectors


class RotaryPositions(nn.Module):
    """RoPE (Su et al. 2021, section 3.4): the dot product of a query at m and a key at n depends on m - n only.

    The pair (x_2i, x_2i+1), read as a complex number, is rotated by the angle position / 10000^(2i/width). As a complex
    multiplication this takes a third of the time of sines and cosines of real halves (CPU, forward and backward).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
        # No buffer: a change of the model's dtype would round the table, or drop its imaginary part.
        self.table = torch.empty(0, width // 2, dtype=torch.complex64)

    def forward(self, x: Tensor, start: int) -> Tensor:
        """x (..., T, width): the vectors of positions start .. start + T - 1, counted from 0. Same shape out as in."""
        return self._rotate(x, self._rotations(start + x.size(-2), x)[start:])

    def at(self, x: Tensor, places: Tensor, longest: int) -> Tensor:
        """x (N, H, width): the vectors of positions `places` (N,), all below `longest`. Same shape out as in."""
        return self._rotate(x, self._rotations(longest, x).index_select(0, places)[:, None])

    @staticmethod
    def _rotate(x: Tensor, rotations: Tensor) -> Tensor:
        """Rotate x (..., width) by `rotations` (..., width / 2), complex."""
        pairs = x.to(rotations.real.dtype)  # there are no complex numbers of two bf16
        if any(stride % 2 for stride in pairs.stride()[:-1]):  # beside values of an odd width
            pairs = pairs.clone(memory_format=torch.contiguous_format)
        rotated = torch.view_as_complex(pairs.view(*x.shape[:-1], -1, 2)) * rotations
        return torch.view_as_real(rotated).flatten(-2).to(x.dtype)

    def _rotations(self, length: int, x: Tensor) -> Tensor:
        """Return exp(i * angle), (length, width / 2), in a precision that keeps that of `x`."""
        dtype = torch.promote_types(x.dtype, torch.complex64)
        if self.table.size(0) < length or self.table.dtype != dtype or self.table.device != x.device:
            with torch.inference_mode(False):  # first used while translating, the table must still serve training
                angles = torch.arange(max(256, 2 * length), dtype=torch.float64)[:, None] * self.rates
                self.table = torch.polar(torch.ones_like(angles), angles).to(x.device, dtype)
        return self.table[:length]
