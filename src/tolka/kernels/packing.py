"""Packed rows: the tokens of several sentences in one matrix, one row each, so that nothing is computed for padding.

Shapes: B sentences, L positions of the longest, N rows, W width of a row.
"""

from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from tolka.kernels.matmul import rounded_row_count, row_counts_are_compiled

_WORTH_PACKING = 0.01  # share of padding above which copying rows for attention costs less than computing padding


def token_positions(lengths: Tensor, longest: int) -> Tensor:
    """Return (N,): the positions in (B, longest), flattened, of the tokens of sentences of `lengths` (B,)."""
    return (torch.arange(longest) < lengths[:, None]).flatten().nonzero().squeeze(1)


class Packing:
    """The layout of N rows: one per token, sentence after sentence; or one per position of (B, L), padding included.

    tokens: (N,), the position in (B, L), flattened, of each row; None where all B * L positions have a row.
    """

    def __init__(
        self, lengths: Tensor, longest: int, tokens: Tensor | None = None, masked: bool = True, padding_rows: int = 0
    ) -> None:
        """lengths: (B,) tokens of each sentence. longest: L. masked: whether some of the positions are padding.

        padding_rows: how many rows follow those of `tokens`; nothing attends to them and no gradient reaches them.
        """
        self.sentences, self.lengths, self.longest = len(lengths), lengths, longest
        self.padding_rows, self.tokens, self._masked = padding_rows, tokens, masked
        self._bias: Tensor | None = None
        # A padding row repeats the first token: computed like any other, and never read.
        if tokens is not None and padding_rows:
            self.tokens = torch.cat([tokens, tokens.new_zeros(padding_rows)])

    @cached_property
    def _padding(self) -> Tensor:
        """Which positions (B, L) are padding."""
        return torch.arange(self.longest, device=self.lengths.device) >= self.lengths[:, None]

    @cached_property
    def _rows(self) -> Tensor:
        """The row of each position (B * L,); the first row for padding."""
        assert self.tokens is not None
        tokens = self.tokens[: len(self.tokens) - self.padding_rows]
        rows = tokens.new_zeros(self.sentences * self.longest)
        return rows.index_copy_(0, tokens, torch.arange(len(tokens), device=tokens.device))

    @cached_property
    def mask(self) -> Tensor | None:
        """(B, 1, 1, L), true at tokens; None without padding, which spares the attention kernels a mask."""
        return ~self._padding[:, None, None, :] if self._masked else None

    def mask_for(self, query: Tensor) -> Tensor | None:
        """Return `mask` as attention on the device takes it: on a GPU 0 at tokens and -inf elsewhere, in its dtype."""
        if not self._masked or query.device.type == "cpu":
            return self.mask
        # Converted once: the kernel would do it in every layer. It reads rows of 16 values, so that L is rounded up.
        if self._bias is None or self._bias.dtype != query.dtype:
            self._bias = query.new_zeros(self.sentences, 1, 1, -(-self.longest // 16) * 16)
            self._bias[..., : self.longest].masked_fill_(self._padding[:, None, None, :], float("-inf"))
        return self._bias

    @cached_property
    def offsets(self) -> Tensor:
        """The row at which each sentence begins, and the number of rows: (B + 1,) int32."""
        return F.pad(self.lengths.cumsum(0, dtype=torch.int32), (1, 0))

    @cached_property
    def places(self) -> Tensor:
        """The position (N,) of each row within its sentence, from 0."""
        if self.tokens is None:
            return torch.arange(self.longest, device=self.lengths.device).repeat(self.sentences)
        return self.tokens % self.longest

    def pack_ids(self, ids: Tensor) -> Tensor:
        """Return the ids of the rows: (B, L) -> (N,)."""
        flat = ids.flatten()
        return flat if self.tokens is None else flat.index_select(0, self.tokens)

    def pad(self, rows: Tensor) -> Tensor:
        """Pad rows: (N, ...) -> (B, L, ...). Padding repeats some row, has no gradient, and must not be attended to."""
        if self.tokens is not None:
            padding_rows = slice(len(rows) - self.padding_rows, None)
            rows = _Select.apply(rows, self._rows, self.tokens, padding_rows)  # type: ignore[no-untyped-call]
        return rows.view(self.sentences, self.longest, *rows.shape[1:])

    def pack(self, padded: Tensor) -> Tensor:
        """Pack padded rows: (B, L, W) -> (N, W)."""
        flat = padded.flatten(0, 1)
        if self.tokens is None:
            return flat
        return _Select.apply(flat, self.tokens, self._rows, self._padding.flatten())  # type: ignore[no-untyped-call]

    def token_rows(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Return some of the rows (N, W). positions: of their tokens in (B, L), flattened, in ascending order."""
        if self.tokens is None:
            return rows[positions]
        count = len(rows) - self.padding_rows
        return rows[self._rows[positions]] if len(positions) < count else rows[:count]


def choose_packing(lengths: Tensor, longest: int, tokens: Tensor | None = None, takes_packed: bool = False) -> Packing:
    """Return the fastest packing on the device, for sentences of `lengths` (B,) padded to `longest`.

    tokens: `token_positions(lengths, longest)`, where the caller has it. takes_packed: whether the attention of a GPU
    takes packed rows, as flash attention does; else they would be copied for each.
    """
    if lengths.device.type != "cpu":
        # Counting the padding would wait for the device.
        masked = tokens is None or len(tokens) < len(lengths) * longest
        return Packing(lengths, longest, tokens if takes_packed else None, masked)
    tokens = token_positions(lengths, longest) if tokens is None else tokens
    padding = 1 - len(tokens) / (len(lengths) * longest)
    padding_rows = rounded_row_count(len(tokens)) - len(tokens) if row_counts_are_compiled() else 0
    if padding < _WORTH_PACKING and not padding_rows:
        return Packing(lengths, longest, masked=padding > 0)
    return Packing(lengths, longest, tokens, padding > 0, padding_rows)


class _Select(torch.autograd.Function):
    """x (R, ...) -> its rows `chosen`. A row's gradient is that of one result, `back`; those `without` get zero.

    The rows without a gradient are padding: a slice, or true in (R,).
    """

    # `index_select` alone would add up the gradients of all copies of a row, one after the other: here every row has
    # one position whose gradient counts, so that the backward pass is a selection too.

    @staticmethod
    def forward(ctx: Any, x: Tensor, chosen: Tensor, back: Tensor, without: slice | Tensor) -> Tensor:
        ctx.back, ctx.without = back, without
        return x.index_select(0, chosen)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        rows = gradient.index_select(0, ctx.back)
        rows[ctx.without] = 0.0
        return rows, None, None, None
