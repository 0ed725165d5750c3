"""Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).

Shapes: B sentences, T queries, S keys, N rows of queries, M rows of keys (see `tolka.kernels.packing`), H heads, D
model width, K and V widths of one head's keys and values.
"""

import math

import torch
from torch import Tensor, nn

from tolka.kernels.attention import packed_attention
from tolka.kernels.packing import Packing
from tolka.nn.linear import FusedLinear, Linear
from tolka.nn.positions import RotaryPositions


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)): query (B, H, T, K), key (B, H, S, K) -> (B, H, T, S); each row sums to 1.

    mask: bool, broadcastable to (B, H, T, S), true where a query may attend. causal: hide later positions.
    """
    # A dot product of d_k terms of variance 1 has variance d_k: unscaled, the softmax would saturate, and its gradient
    # vanish (footnote 4 of the paper).
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
    if causal:
        # Row = query, column = key: a lower triangle lets position t attend to 0 .. t.
        not_later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        mask = not_later if mask is None else mask & not_later
    if mask is not None:
        # exp(-inf) = 0: hidden keys have weight 0, and the others' weights sum to 1.
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1)


class MultiHeadAttention(nn.Module):
    """Attention in H heads side by side, and the output projection W_O."""

    def __init__(self, d_model: int, heads: int, d_v: int, dropout_rate: float) -> None:
        super().__init__()
        # d_k = D / H, so that H heads cost as much as one of the full width (section 3.2.2).
        self.heads, self.d_k, self.d_v = heads, d_model // heads, d_v
        self.dropout_rate = dropout_rate
        self.output = Linear(heads * d_v, d_model)

    def split_heads(self, x: Tensor, width: int) -> Tensor:
        """(B, T, H * width) -> (B, H, T, width), a view."""
        return x.view(*x.shape[:-1], self.heads, width).transpose(1, 2)

    def join_heads(self, context: Tensor) -> Tensor:
        """(B, H, T, V) -> (B, T, D), through W_O."""
        return self.output(context.transpose(1, 2).flatten(2))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        rows: Packing,
        source: Packing,
        causal: bool,
        maps: list[Tensor] | None,
    ) -> Tensor:
        """query (N, H, K) in `rows`, key (M, H, K) and value (M, H, V) in `source` -> (N, D), through W_O.

        maps: where given, gets the weights (B, H, T, S).
        """
        if maps is None:
            dropout_rate = self.dropout_rate if self.training else 0.0
            context = packed_attention(query, key, value, rows, source, causal, dropout_rate)
        else:
            # By the formula, as the fused kernels never have the weights in memory.
            query, key, value = rows.pad(query), source.pad(key), source.pad(value)
            query, key, value = (x.transpose(1, 2) for x in (query, key, value))
            # Padding follows a sentence's tokens: the causal mask hides it from them already.
            maps.append(attention_weights(query, key, None if causal else source.mask, causal))
            context = rows.pack((maps[-1] @ value).transpose(1, 2).flatten(2))
        return self.output(context)


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from one sequence. rotary: whether queries and keys are rotated by their positions."""

    def __init__(self, d_model: int, heads: int, d_v: int, dropout_rate: float, rotary: bool = False) -> None:
        super().__init__(d_model, heads, d_v, dropout_rate)
        # W_Q, W_K and W_V of all heads: one matrix multiplication computes all of them.
        self.query_key_value = FusedLinear(d_model, [heads * self.d_k, heads * self.d_k, heads * d_v])
        self.rotary = RotaryPositions(self.d_k) if rotary else None

    def project(self, x: Tensor, rows: Packing) -> tuple[Tensor, Tensor, Tensor]:
        """(N, D) -> query (N, H, K), key (N, H, K), value (N, H, V)."""
        projected = torch.split(self.query_key_value(x), self.query_key_value.widths, dim=-1)
        query, key, value = (part.view(len(part), self.heads, -1) for part in projected)
        if self.rotary is not None:
            # Values are not rotated: positions decide where to attend, not what is read there.
            query, key = (self.rotary.at(part, rows.places, rows.longest) for part in (query, key))
        return query, key, value

    def forward(self, x: Tensor, rows: Packing, causal: bool, maps: list[Tensor] | None = None) -> Tensor:
        """(N, D) -> (N, D). causal: whether a position attends only to itself and to those before it."""
        return self.attend(*self.project(x, rows), rows, rows, causal, maps)


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder."""

    def __init__(self, d_model: int, heads: int, d_v: int, dropout_rate: float) -> None:
        super().__init__(d_model, heads, d_v, dropout_rate)
        self.query = Linear(d_model, heads * self.d_k)
        self.key_value = FusedLinear(d_model, [heads * self.d_k, heads * d_v])

    def forward(
        self, x: Tensor, rows: Packing, encoded: Tensor, source: Packing, maps: list[Tensor] | None = None
    ) -> Tensor:
        """x (N, D) in `rows`, encoder states (M, D) in `source` -> (N, D)."""
        projected = torch.split(self.key_value(encoded), self.key_value.widths, dim=-1)
        query, key, value = (part.view(len(part), self.heads, -1) for part in (self.query(x), *projected))
        return self.attend(query, key, value, rows, source, False, maps)
