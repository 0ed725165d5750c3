"""How the tokens of several sentences lie in one matrix, a row each, so that nothing is computed for padding.

Shapes: B sentences, L positions of the longest, N rows, W numbers a row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Packing:
    """N rows: those of the tokens, one sentence after the other; or all B x L positions, padding and all.

    lengths: (B,) tokens of each sentence. longest: L. tokens: (N,), where in (B, L), flattened, each row stands; None
    where all positions have a row. masked: whether there may be padding among them. fused: whether the device attends
    to packed rows as they are.
    """

    lengths: Tensor
    longest: int
    tokens: Tensor | None = None
    masked: bool = True
    fused: bool = False

    @property
    def sentences(self) -> int:
        """B."""
        return len(self.lengths)

    @cached_property
    def padding(self) -> Tensor:
        """(B, L), true where there is no token."""
        return torch.arange(self.longest, device=self.lengths.device) >= self.lengths[:, None]

    @cached_property
    def mask(self) -> Tensor | None:
        """(B, 1, 1, L), true at tokens; None without padding, which spares the kernels a mask."""
        return ~self.padding[:, None, None, :] if self.masked else None

    @cached_property
    def places(self) -> Tensor:
        """(N,): how manieth of its sentence each row is, from 0; of packed rows."""
        assert self.tokens is not None
        return self.tokens % self.longest

    @cached_property
    def starts(self) -> Tensor:
        """(B + 1,) int32: the row with which each sentence begins, and their end; of packed rows."""
        ends = self.lengths.cumsum(0, dtype=torch.int32)
        return torch.cat([ends.new_zeros(1), ends])

    @cached_property
    def _rows(self) -> Tensor:
        """(B * L,): the row of each position; at padding the first one."""
        assert self.tokens is not None
        rows = self.tokens.new_zeros(self.sentences * self.longest)
        return rows.index_copy_(0, self.tokens, torch.arange(len(self.tokens), device=rows.device))

    def ids(self, padded: Tensor) -> Tensor:
        """Ids (B, L) -> (N,)."""
        flat = padded.flatten()
        return flat if self.tokens is None else flat.index_select(0, self.tokens)

    def add(self, rows: Tensor, places: Tensor) -> Tensor:
        """Rows (N, W), to each what belongs to its place in the sentence, of `places` (L, W)."""
        if self.tokens is None:
            return (rows.view(self.sentences, self.longest, -1) + places).flatten(0, 1)
        return rows + places.index_select(0, self.places)

    def pad(self, rows: Tensor) -> Tensor:
        """(N, W) -> (B, L, W), at padding some token's row: for what never looks there, to which no gradient comes."""
        if self.tokens is not None:
            rows = _Padded.apply(rows, self._rows, self.tokens)  # type: ignore[no-untyped-call]
        return rows.view(self.sentences, self.longest, -1)

    def pack(self, padded: Tensor) -> Tensor:
        """(B, L, W) -> (N, W)."""
        flat = padded.flatten(0, 1)
        if self.tokens is None:
            return flat
        packed: Tensor = _Packed.apply(flat, self.tokens, self._rows, self.padding.flatten())  # type: ignore[no-untyped-call]
        return packed


class _Padded(torch.autograd.Function):
    """Rows (N, W) -> (B * L, W) by `rows`; the gradient of padding is not read, for it is zero."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        return packed.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None


class _Packed(torch.autograd.Function):
    """(B * L, W) -> rows (N, W) by `tokens`; the gradient of padding is zero."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, tokens: Tensor, rows: Tensor, padding: Tensor) -> Tensor:
        ctx.save_for_backward(rows, padding)
        return padded.index_select(0, tokens)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        rows, padding = ctx.saved_tensors
        return gradient.index_select(0, rows).masked_fill_(padding[:, None], 0.0), None, None, None
