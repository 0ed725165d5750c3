"""Positional encodings: added to embeddings, or applied to queries and keys as rotations."""

import math

import torch
from torch import Tensor, nn

FAIRSEQ_OFFSET = 2
"""The position of the first token in fairseq, where 0 is never used and 1 is the id of padding."""


def sinusoids(positions: Tensor, width: int, kind: str = "sinusoidal") -> Tensor:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same) (Vaswani et al. 2017, section 3.5).

    positions: (T,) integers. kind: sinusoidal_halves has all sines first, then all cosines, as the class Marian of
    transformers. sinusoidal_marian has them in this order too, with the exponent i / (width/2 - 1), as Marian itself
    (Junczys-Dowmunt et al. 2018). sinusoidal_fairseq is the same with positions counted from 2, as in fairseq (Ott et
    al. 2019) and M2M-100. Returns (T, width) float32; an odd width has one sine more than cosines, of which
    sinusoidal_marian lacks the first, or with sinusoidal_fairseq a last column of zeros.
    """
    if kind == "sinusoidal_fairseq":
        even = sinusoids(positions + FAIRSEQ_OFFSET, width // 2 * 2, "sinusoidal_marian")
        return nn.functional.pad(even, (0, width % 2))
    if kind == "sinusoidal_halves":
        # In float64, as Hugging Face computes Marian's table.
        exact = torch.arange(0, width, 2, device=positions.device, dtype=torch.float64) / width
        angles = positions[:, None].double() / 10000.0**exact
        return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()
    # 10000^(-2i/width) as exp of a logarithm, in float32, as Marian and M2M-100 in transformers compute theirs.
    divisor = width - 2 if kind == "sinusoidal_marian" else width
    rates = torch.exp(torch.arange(0, width, 2, device=positions.device) * (-math.log(10000.0) / divisor))
    angles = positions[:, None].float() * rates  # (T, ceil(width / 2))
    if kind == "sinusoidal_marian":
        # Of an odd width Marian writes the last sine over the first cosine.
        return torch.cat([angles.sin(), angles[:, width % 2 :].cos()], dim=1)
    # Neighbouring columns have the same angle.
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class SinusoidalPositions(nn.Module):
    """The fixed table, which grows for longer sentences."""

    table: Tensor

    def __init__(self, width: int, kind: str = "sinusoidal") -> None:
        """kind: as for `sinusoids`."""
        super().__init__()
        self.width, self.kind = width, kind
        # Not saved, so that a checkpoint sets no limit on the length.
        self.register_buffer("table", torch.empty(0, width), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the encodings (length, width) of positions start .. start + length - 1, counted from 0."""
        end = start + length
        if self.table.size(0) < end:
            # The table may be used in training later, which takes no tensors of inference mode. Twice the length, so
            # that a decoder that is one token further at each step seldom computes it again.
            with torch.inference_mode(False):
                positions = torch.arange(max(256, 2 * end), device=self.table.device)
                self.table = sinusoids(positions, self.width, self.kind).to(self.table.dtype)
        return self.table[start:end]


class LearnedPositions(nn.Module):
    """One trained vector per position, up to `limit`; later positions share the last one."""

    def __init__(self, width: int, limit: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(limit, width)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors (length, width) of positions start .. start + length - 1, counted from 0."""
        positions = torch.arange(start, start + length, device=self.embedding.weight.device)
        return self.embedding(positions.clamp(max=self.embedding.num_embeddings - 1))


class RotaryPositions(nn.Module):
    """RoPE (Su et al. 2021, section 3.4): the score of a query at m and a key at n depends on m - n only.

    The pair (x_2i, x_2i+1), read as a complex number, is rotated by the angle position / 10000^(2i/width).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        # In float64: at position 1000, angles in fp32 are off by up to 2e-5.
        self.rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
        # Not a buffer: a change of the model's dtype would round the table, or drop its imaginary part.
        self.table = torch.empty(0, width // 2, dtype=torch.complex64)

    def forward(self, x: Tensor, start: int) -> Tensor:
        """Rotate x (..., T, width), at positions start .. start + T - 1, counted from 0."""
        return self._rotate(x, self._rotations(start + x.size(-2), x)[start:])

    def at(self, x: Tensor, places: Tensor, longest: int) -> Tensor:
        """Rotate x (N, H, width), at positions `places` (N,), all below `longest`."""
        return self._rotate(x, self._rotations(longest, x).index_select(0, places)[:, None])

    @staticmethod
    def _rotate(x: Tensor, rotations: Tensor) -> Tensor:
        """Rotate x (..., width) by `rotations` (..., width / 2), complex."""
        # torch has no complex bf16.
        pairs = x.to(rotations.real.dtype)
        # A complex view needs even strides, which queries and keys beside values of an odd width do not have.
        if any(stride % 2 for stride in pairs.stride()[:-1]):
            pairs = pairs.clone(memory_format=torch.contiguous_format)
        # (a + ib) exp(i angle) rotates the pair (a, b). Takes a third of the time of the usual sines and cosines of
        # real halves (CPU, forward and backward).
        rotated = torch.view_as_complex(pairs.view(*x.shape[:-1], -1, 2)) * rotations
        return torch.view_as_real(rotated).flatten(-2).to(x.dtype)

    def _rotations(self, length: int, x: Tensor) -> Tensor:
        """Return exp(i * angle), (length, width / 2), in at least the precision of `x`."""
        dtype = torch.promote_types(x.dtype, torch.complex64)
        if self.table.size(0) < length or self.table.dtype != dtype or self.table.device != x.device:
            with torch.inference_mode(False):  # as in `SinusoidalPositions`
                angles = torch.arange(max(256, 2 * length), dtype=torch.float64)[:, None] * self.rates
                self.table = torch.polar(torch.ones_like(angles), angles).to(x.device, dtype)
        return self.table[:length]
