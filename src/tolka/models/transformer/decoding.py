"""Decoding with the Transformer, token by token, with cached keys and values.

Shapes: B sentences, k hypotheses per sentence, N = B * k, S source tokens, H heads, K and V widths of one head's keys
and values, W those of all heads together, D model width.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.kernels.attention import attend_few, encoded_at_once, fused_attention
from tolka.kernels.packing import Packing, choose_packing
from tolka.models.base import DecoderState, remaining_sentences
from tolka.models.transformer.layers import DecoderLayer
from tolka.models.transformer.model import Transformer
from tolka.nn.attention import CrossAttention, SelfAttention


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """Cached keys and values: of the prefix once per hypothesis, of the source once per sentence."""

    prefix: list[Tensor]  # per layer, keys and values side by side, all heads together: (N, position, W)
    memory: list[tuple[Tensor, Tensor]]  # per layer, what `project_memory` returned for B sentences
    padding: Tensor | None  # (B, 1, 1, S), true where there is no source token
    position: int  # of the next token, from 0
    beam: int  # k

    def select(self, rows: Tensor) -> Self:
        """Keep the hypotheses `rows` (B', k') of the prefix, and the memory of the sentences that remain."""
        prefix = [cache.index_select(0, rows.flatten()) for cache in self.prefix]
        # A sentence's hypotheses share its memory, so that re-ordering them within their beam copies none of it.
        memory, padding = self.memory, self.padding
        sentences = remaining_sentences(rows, self.beam, len(memory[0][0]))
        if sentences is not None:
            memory = [(keys.index_select(0, sentences), values.index_select(0, sentences)) for keys, values in memory]
            padding = None if padding is None else padding.index_select(0, sentences)
        return type(self)(prefix, memory, padding, self.position, rows.size(1))


class DecodingTransformer(Transformer):
    """The Transformer that `TransformerConfig.build` returns: `start` and `step` for decoding, besides `forward`."""

    def start(self, source: Tensor, lengths: Tensor) -> TransformerState:
        """Encode source (B, S) once; return the state before the first token."""
        memory = self._encode_in_parts(source, lengths)
        prefix = [empty_cache(layer.attention, memory[0][0], len(source)) for layer in self.decoder]
        # None where no sentence has padding, which spares every step the masking.
        mask = choose_packing(lengths, source.size(1)).mask
        return TransformerState(prefix, memory, None if mask is None else ~mask, position=0, beam=1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k), the last one of each hypothesis -> features (B, k, D) of the next one, and the new state."""
        assert isinstance(state, TransformerState)
        x: Tensor = self.target_embedding(self._decoder_input(token)) * self.config.embedding_scale  # (B, k, D)
        if self.target_positions is not None:
            # All hypotheses are of one length, so that one position serves them all.
            x = x + self.target_positions(state.position, 1)
        prefix = []
        for layer, cache, memory in zip(self.decoder, state.prefix, state.memory, strict=True):
            x, cache = decoder_layer_step(layer, x, cache, memory, state.padding)
            prefix.append(cache)
        new = TransformerState(prefix, state.memory, state.padding, state.position + 1, state.beam)
        return self.decoder_norm(x), new

    def _encode_in_parts(self, source: Tensor, lengths: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each decoder layer's memory; only a few sentences may be encoded at a time, with little padding."""
        sentences, longest = source.shape
        memory: list[tuple[Tensor, Tensor]] = []
        count = encoded_at_once(source)
        for part in (slice(start, start + count) for start in range(0, sentences, count)):
            shorter = source[part, : int(lengths[part].max())]
            for number, (keys, values) in enumerate(self._memories(shorter, lengths[part])):
                # The first part tells the sizes; all parts are written into one tensor for each layer.
                if number == len(memory):
                    (heads, key_width), value_width = keys.shape[1:3], values.size(3)
                    all_keys = keys.new_zeros(sentences, heads, key_width, longest)
                    memory.append((all_keys, values.new_zeros(sentences, heads, longest, value_width)))
                memory[number][0][part, :, :, : keys.size(3)] = keys
                memory[number][1][part, :, : values.size(2)] = values
        return memory

    def _memories(self, source: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """(B, S), (B,) -> the memory of each decoder layer, as views."""
        # Every decoder layer attends to the same encoder states, with a W_K and a W_V of its own.
        rows = choose_packing(lengths, source.size(1))
        encoded = self._encode(source, rows)
        for layer in self.decoder:
            yield project_memory(layer.cross, encoded, rows)


def decoder_layer_step(
    layer: DecoderLayer, x: Tensor, cache: Tensor, memory: tuple[Tensor, Tensor], padding: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`DecoderLayer.forward` for one new position per hypothesis: x (B, k, D) -> (B, k, D), and the longer cache."""

    def attend_to_prefix(y: Tensor) -> Tensor:
        nonlocal cache
        # Each hypothesis has its own prefix: (B, k, D) -> (N, 1, D), one query for each.
        context, cache = self_attention_step(layer.attention, y.flatten(0, 1)[:, None], cache)
        return context.view(y.shape)

    # The same residuals, norms and weights as in training; only the attention is over the cache.
    x = layer.around_attention(x, attend_to_prefix)
    x = layer.around_cross(x, lambda y: attend_to_memory(layer.cross, y, memory, padding))
    x = layer.around_feedforward(x, layer.feedforward)
    return x, cache


def empty_cache(attention: SelfAttention, like: Tensor, prefixes: int) -> Tensor:
    """Return the cache (N, 0, W) of N = `prefixes` prefixes without a token, with the type and device of `like`."""
    return like.new_empty(prefixes, 0, sum(attention.query_key_value.widths[1:]))


def self_attention_step(attention: SelfAttention, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
    """One new position x (N, 1, D), which attends to the cached ones and itself -> (N, 1, D), and the longer cache.

    cache: (N, t, W).
    """
    query_width, *widths = attention.query_key_value.widths
    query, key_value = attention.query_key_value(x).split([query_width, sum(widths)], dim=-1)
    query = attention.split_heads(query, attention.d_k)
    if attention.rotary is not None:
        # Keys are cached rotated: by their own position, which never changes.
        key, value = torch.split(key_value, widths, dim=-1)
        query = attention.rotary(query, cache.size(1))
        key = attention.rotary(attention.split_heads(key, attention.d_k), cache.size(1))
        key_value = torch.cat([key.transpose(1, 2).flatten(2), value], dim=-1)
    cache = torch.cat([cache, key_value], dim=1)
    keys, values = torch.split(cache, widths, dim=-1)
    keys, values = attention.split_heads(keys, attention.d_k), attention.split_heads(values, attention.d_v)
    # No mask: every cached position comes before the query, and no prefix is shorter than another.
    return attention.join_heads(fused_attention(query, keys, values, mask=None, causal=False)), cache


def project_memory(attention: CrossAttention, encoded: Tensor, source: Packing) -> tuple[Tensor, Tensor]:
    """Encoder states (M, D) -> K^T / sqrt(d_k), (B, H, K, S), and V, (B, H, S, V): computed once per sentence."""
    projected = torch.split(source.pad(attention.key_value(encoded)), attention.key_value.widths, dim=-1)
    key, value = attention.split_heads(projected[0], attention.d_k), attention.split_heads(projected[1], attention.d_v)
    # Transposed and divided once here, not at every step.
    return key.transpose(-1, -2) / math.sqrt(attention.d_k), value


def attend_to_memory(
    attention: CrossAttention, x: Tensor, memory: tuple[Tensor, Tensor], padding: Tensor | None
) -> Tensor:
    """x (B, k, D), one position of each of a sentence's k hypotheses -> (B, k, D). padding: as in the state."""
    # The k hypotheses of a sentence are k queries to one memory, which is never copied for each of them.
    query = attention.split_heads(attention.query(x), attention.d_k)  # (B, H, k, K)
    return attention.join_heads(attend_few(query, *memory, padding))
