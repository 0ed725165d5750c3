"""How the tokens of several sentences lie in one matrix, a row each, so that nothing is computed for padding.

Shapes: B sentences, L positions of the longest, N rows, W numbers a row.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Packing:
    """N rows: those of the tokens, one sentence after the other; or all B x L positions, padding and all.

    mask: (B, 1, 1, L), true at tokens; None without padding, which spares the kernels a mask.
    places: (N,), of packed rows: how manieth of its sentence each one is, from 0.
    """

    def __init__(
        self, lengths: Tensor, longest: int, tokens: Tensor | None = None, masked: bool = True, fillers: int = 0
    ) -> None:
        """lengths: (B,) tokens of each sentence. longest: L. tokens: where in (B, L), flattened, each row stands;
        None where all positions have a row. masked: whether there may be padding among them. fillers: how many rows
        more there are behind those of `tokens`, which nothing looks at and no gradient comes to.
        """
        self.sentences, self.lengths, self.longest = len(lengths), lengths, longest
        self.fillers, self.tokens = fillers, tokens
        if tokens is not None:
            self.tokens = torch.cat([tokens, tokens.new_zeros(fillers)]) if fillers else tokens
            self.places = self.tokens % longest
        self._spread_out(masked)

    def _spread_out(self, masked: bool) -> None:
        """What attention over padded sentences needs."""
        self._padding = torch.arange(self.longest, device=self.lengths.device) >= self.lengths[:, None]
        self.mask = ~self._padding[:, None, None, :] if masked else None
        if self.tokens is not None:
            self._rows = self._row_of_each_position(self.tokens[: len(self.tokens) - self.fillers])

    def _row_of_each_position(self, tokens: Tensor) -> Tensor:
        """(B * L,); at padding the first one."""
        rows = tokens.new_zeros(self.sentences * self.longest)
        return rows.index_copy_(0, tokens, torch.arange(len(tokens), device=rows.device))

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
            rows = _Padded.apply(rows, self._rows, self.tokens, self.fillers)  # type: ignore[no-untyped-call]
        return rows.view(self.sentences, self.longest, -1)

    def pack(self, padded: Tensor) -> Tensor:
        """(B, L, W) -> (N, W)."""
        flat = padded.flatten(0, 1)
        if self.tokens is None:
            return flat
        packed: Tensor = _Packed.apply(flat, self.tokens, self._rows, self._padding.flatten())  # type: ignore[no-untyped-call]
        return packed

    def of_tokens(self, rows: Tensor, positions: Tensor) -> Tensor:
        """(N, W) -> those rows alone that are tokens'. positions: where in (B, L), flattened, the tokens are."""
        if self.tokens is None:
            return rows[positions]
        return rows[: len(rows) - self.fillers] if self.fillers else rows


class FusedPacking(Packing):
    """Rows of tokens to which the device attends as they are: they are never padded.

    starts: (B + 1,) int32, the row with which each sentence begins, and their end.
    """

    def _spread_out(self, masked: bool) -> None:
        ends = self.lengths.cumsum(0, dtype=torch.int32)
        self.starts = torch.cat([ends.new_zeros(1), ends])


class _Padded(torch.autograd.Function):
    """Rows (N, W) -> (B * L, W) by `rows`; the gradient of padding is not read, for it is zero."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, rows: Tensor, tokens: Tensor, fillers: int) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.fillers = fillers
        return packed.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        of_rows = gradient.index_select(0, ctx.saved_tensors[0])
        if ctx.fillers:
            of_rows[-ctx.fillers :] = 0.0
        return of_rows, None, None, None


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
