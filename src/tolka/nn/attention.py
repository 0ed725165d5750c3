"""Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2) with one fused projection.

Shapes: B sentences, k hypotheses a sentence, T queries, S keys, N rows of a packing, H heads, D model width, K and V
widths of one head's keys and values.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.nn.cache import KeyValueCache
from tolka.nn.dropout import dropout
from tolka.nn.linear import FusedLinear, Linear
from tolka.nn.packing import FusedPacking, Packing
from tolka.nn.positions import RotaryPositions
from tolka.nn.short_attention import attend_short, suits_short
from tolka.nn.variable_length import attend_packed


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, rate: float = 0.0) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V by the fastest way there is: on most devices, their fused kernel.

    query (B, H, T, K), key (B, H, S, K), value (B, H, S, V) -> (B, H, T, V).
    mask: bool, broadcastable to (B, H, T, S), true where a query may look. rate: dropout on the weights.
    """
    if rate > 0.0 and query.device.type == "cpu":  # torch's own would draw from its slow generator
        weights = dropout(attention_weights(query, key, mask, causal), rate, training=True)
        return weights @ value
    if suits_short(query, key):
        return attend_short(query, key, value, mask, causal)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, dropout_p=rate)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """The unfused path: the weights themselves, (B, H, T, S); each row sums to 1. Same arguments as `attend`."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
    if causal:
        looks_back = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        mask = looks_back if mask is None else mask & looks_back
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1)


class _Heads(nn.Module):
    """What self- and cross-attention share: splitting into heads, joining them, the output projection W_O."""

    def __init__(self, d_model: int, heads: int, d_v: int, rate: float) -> None:
        super().__init__()
        self.heads = heads
        self.d_k = d_model // heads
        self.d_v = d_v
        self.rate = rate
        self.output = Linear(heads * d_v, d_model)

    def split(self, x: Tensor, width: int) -> Tensor:
        """(B, T, H * width) -> (B, H, T, width), a view."""
        return x.view(*x.shape[:2], self.heads, width).transpose(1, 2)

    def join(self, context: Tensor) -> Tensor:
        """(B, H, T, V) -> (B, T, D), through W_O."""
        joined: Tensor = self.output(context.transpose(1, 2).flatten(2))
        return joined

    def look(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        rows: Packing,
        mask: Tensor | None,
        causal: bool,
        maps: list[Tensor] | None,
    ) -> Tensor:
        """The queries of `rows`, padded (B, H, T, K), their keys and values -> (N, D), through W_O; maps as below."""
        if maps is not None:
            maps.append(attention_weights(query, key, mask, causal))
            context = maps[-1] @ value
        else:
            context = attend(query, key, value, mask, causal, self.rate if self.training else 0.0)
        packed: Tensor = self.output(rows.pack(context.transpose(1, 2).flatten(2)))
        return packed

    def look_packed(
        self, query: Tensor, key: Tensor, value: Tensor, rows: FusedPacking, seen: FusedPacking, causal: bool
    ) -> Tensor:
        """Queries (N, H, K) of `rows`, keys and values of `seen` -> (N, D), through W_O: nothing is padded."""
        context = attend_packed(query, key, value, rows, seen, causal, self.rate if self.training else 0.0)
        packed: Tensor = self.output(context.flatten(1))
        return packed


class SelfAttention(_Heads):
    """Queries, keys and values from one sequence: one matrix product makes all three.

    rotary: whether queries and keys are turned by their positions.
    """

    def __init__(self, d_model: int, heads: int, d_v: int, rate: float, rotary: bool = False) -> None:
        super().__init__(d_model, heads, d_v, rate)
        self.query_key_value = FusedLinear(d_model, [heads * self.d_k, heads * self.d_k, heads * d_v])
        self.rotary = RotaryPositions(self.d_k) if rotary else None

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T, D) -> query (B, H, T, K), key (B, H, T, K), value (B, H, T, V)."""
        return self._divide(self.query_key_value(x))

    def _divide(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the matrix product gives for (B, T, D) -> as `project`."""
        parts = torch.split(fused, self.query_key_value.widths, dim=-1)
        query, key, value = (
            self.split(parts[0], self.d_k),
            self.split(parts[1], self.d_k),
            self.split(parts[2], self.d_v),
        )
        if self.rotary is not None:
            query, key = self.rotary(query, 0), self.rotary(key, 0)
        return query, key, value

    def forward(self, x: Tensor, rows: Packing, causal: bool, maps: list[Tensor] | None = None) -> Tensor:
        """(N, D) -> (N, D). With `maps`, takes the unfused path, over rows that can be padded, and appends the weights
        (B, H, T, T).

        The look-ahead mask alone keeps tokens from padding, which only ever follows them.
        """
        fused = self.query_key_value(x)
        if isinstance(rows, FusedPacking):
            parts = torch.split(fused, self.query_key_value.widths, dim=-1)
            query, key, value = (part.view(len(part), self.heads, -1) for part in parts)
            if self.rotary is not None:
                query, key = (self.rotary.at(each, rows.places, rows.longest) for each in (query, key))
            return self.look_packed(query, key, value, rows, rows, causal)
        query, key, value = self._divide(rows.pad(fused))
        return self.look(query, key, value, rows, None if causal else rows.mask, causal, maps)

    def empty_cache(self, x: Tensor, prefixes: int) -> KeyValueCache:
        """Of prefixes without a token; x: whose type and device it has."""
        return KeyValueCache(x.new_empty(prefixes, 0, sum(self.query_key_value.widths[1:])), 0)

    def step(self, x: Tensor, cache: KeyValueCache) -> tuple[Tensor, KeyValueCache]:
        """One new position, (N, 1, D), that sees the cached ones and itself -> (N, 1, D), and the longer cache.

        Cached keys are already turned where positions are rotary.
        """
        query_width, *widths = self.query_key_value.widths
        query, new = self.query_key_value(x).split([query_width, sum(widths)], dim=-1)
        query = self.split(query, self.d_k)
        if self.rotary is not None:
            key, value = torch.split(new, widths, dim=-1)
            query, key = (self.rotary(part, cache.length) for part in (query, self.split(key, self.d_k)))
            new = torch.cat([key.transpose(1, 2).flatten(2), value], dim=-1)
        cache = cache.append(new[:, 0])
        keys, values = torch.split(cache.attended, widths, dim=-1)
        context = attend(query, self.split(keys, self.d_k), self.split(values, self.d_v), None, causal=False)
        return self.join(context), cache


class CrossAttention(_Heads):
    """Queries from the decoder, keys and values from the encoder."""

    def __init__(self, d_model: int, heads: int, d_v: int, rate: float) -> None:
        super().__init__(d_model, heads, d_v, rate)
        self.query = Linear(d_model, heads * self.d_k)
        self.key_value = FusedLinear(d_model, [heads * self.d_k, heads * d_v])

    def keys_and_values(self, encoded: Tensor, source: Packing) -> tuple[Tensor, Tensor]:
        """Encoder states (N, D), rows of `source` -> keys (B, H, S, K) and values (B, H, S, V)."""
        key, value = torch.split(source.pad(self.key_value(encoded)), self.key_value.widths, dim=-1)
        return self.split(key, self.d_k), self.split(value, self.d_v)

    def forward(
        self, x: Tensor, rows: Packing, encoded: Tensor, source: Packing, maps: list[Tensor] | None = None
    ) -> Tensor:
        """x (N, D) in `rows`, encoder states (M, D) in `source` -> (N, D). `maps`: as in `SelfAttention.forward`."""
        query = self.query(x)
        if isinstance(rows, FusedPacking) and isinstance(source, FusedPacking):
            parts = torch.split(self.key_value(encoded), self.key_value.widths, dim=-1)
            query, key, value = (part.view(len(part), self.heads, -1) for part in (query, *parts))
            return self.look_packed(query, key, value, rows, source, causal=False)
        key, value = self.keys_and_values(encoded, source)
        return self.look(self.split(rows.pad(query), self.d_k), key, value, rows, source.mask, False, maps)

    def remember(self, encoded: Tensor, source: Packing) -> tuple[Tensor, Tensor]:
        """What `recall` needs, made once a sentence: K^T / sqrt(d_k), (B, H, K, S), and V, (B, H, S, V).

        In one piece each, which is the caller's to see to, these suit the products of a few queries, which so take a
        third of the time of the fused kernel (a CPU, five queries a sentence).
        """
        key, value = self.keys_and_values(encoded, source)
        return key.transpose(-1, -2) / math.sqrt(self.d_k), value

    def recall(self, x: Tensor, memory: tuple[Tensor, Tensor], padding: Tensor | None) -> Tensor:
        """While decoding: x (B, k, D), a position of each of a sentence's k hypotheses -> (B, k, D).

        padding: (B, 1, 1, S), true where there is no token to look at.
        """
        keys, values = memory
        scores = self.split(self.query(x), self.d_k) @ keys  # (B, H, k, S)
        if padding is not None:
            scores = scores.masked_fill_(padding, float("-inf"))
        return self.join(scores.softmax(dim=-1) @ values)
