"""Decoding with the Transformer, token by token, with cached keys and values.

Shapes: B sentences, k hypotheses per sentence, N = B * k, S source tokens, H heads, K and V widths of one head's keys
and values, W those of all heads together, D model width.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from tolka.kernels.attention import attend_few, fused_attention, keys_for_few, padding_for_few
from tolka.kernels.packing import Packing, choose_packing
from tolka.models.base import DecoderState, remaining_sentences
from tolka.models.transformer.layers import DecoderLayer
from tolka.models.transformer.model import Transformer
from tolka.nn.attention import CrossAttention, SelfAttention

_ROOM = 8  # positions that a cache has more than it needs


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """Cached keys and values: of the prefix once per hypothesis, of the source once per sentence."""

    prefix: list[Tensor]  # per layer, keys and values side by side: (N, at least `position`, W); of an SSRU c: (N, D)
    memory: list[tuple[Tensor, Tensor]]  # per layer, what `project_memory` returned for B sentences
    padding: Tensor | None  # (B, 1, 1, S), true where there is no source token
    position: int  # of the next token, from 0
    beam: int  # k
    rows: Tensor | None = None  # (N',): of the prefixes, those that are left; selected layer by layer in the next step

    def select(self, rows: Tensor) -> Self:
        """Keep the hypotheses `rows` (B', k') of the prefix, and the memory of the sentences that remain."""
        left = rows.flatten() if self.rows is None else self.rows[rows.flatten()]
        # A sentence's hypotheses share its memory, so that re-ordering them within their beam copies none of it.
        memory, padding = self.memory, self.padding
        sentences = remaining_sentences(rows, self.beam, len(memory[0][0]))
        if sentences is not None:
            memory = [(keys.index_select(0, sentences), values.index_select(0, sentences)) for keys, values in memory]
            padding = None if padding is None else padding.index_select(0, sentences)
        return type(self)(self.prefix, memory, padding, self.position, rows.size(1), left)


class DecodingTransformer(Transformer):
    """The Transformer that `TransformerConfig.build` returns: `start` and `step` for decoding, besides `forward`."""

    def start(self, source: Tensor, lengths: Tensor) -> TransformerState:
        """Encode source (B, S) once; return the state before the first token."""
        rows = choose_packing(lengths, source.size(1))
        encoded = self._encode(source, rows)
        # Every decoder layer attends to the same encoder states, with a W_K and a W_V of its own.
        memory = [project_memory(layer.cross, encoded, rows) for layer in self.decoder]
        if self.config.decoder == "ssru":
            dtype = torch.promote_types(memory[0][0].dtype, torch.float32)
            prefix = [memory[0][0].new_zeros(len(source), self.feature_size, dtype=dtype) for _ in self.decoder]
        else:
            prefix = [empty_cache(layer.attention, memory[0][0], len(source)) for layer in self.decoder]
        # None where no sentence has padding, which spares every step the masking.
        padding = padding_for_few(rows, memory[0][0])
        return TransformerState(prefix, memory, padding, position=0, beam=1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k), the last one of each hypothesis -> features (B, k, D) of the next one, and the new state."""
        assert isinstance(state, TransformerState)
        x = self._vectors(token, self.target_embedding)  # (B, k, D)
        if self.target_positions is not None:
            # All hypotheses are of one length, so that one position serves them all.
            x = x + self.target_positions(state.position, 1)
        prefix = []
        for layer, cache, memory in zip(self.decoder, state.prefix, state.memory, strict=True):
            if layer.is_recurrent:
                cache = cache if state.rows is None else cache.index_select(0, state.rows)
            elif state.rows is not None or state.position == cache.size(1):
                cache = _with_room(cache, state.position, state.rows)
            x = decoder_layer_step(layer, x, cache, state.position, memory, state.padding)
            prefix.append(cache)
        new = TransformerState(prefix, state.memory, state.padding, state.position + 1, state.beam)
        return self.decoder_norm(x), new


def decoder_layer_step(
    layer: DecoderLayer, x: Tensor, cache: Tensor, position: int, memory: tuple[Tensor, Tensor], padding: Tensor | None
) -> Tensor:
    """`DecoderLayer.forward` for one new position per hypothesis: x (B, k, D) -> (B, k, D); it enters the cache."""

    def read_prefix(y: Tensor) -> Tensor:
        if layer.is_recurrent:
            return layer.ssru.step(y.flatten(0, 1), cache).view(y.shape)
        # Each hypothesis has its own prefix: (B, k, D) -> (N, 1, D), one query for each.
        return self_attention_step(layer.attention, y.flatten(0, 1)[:, None], cache, position).view(y.shape)

    # The same residuals, norms and weights as in training; only the prefix is read from the cache.
    x = layer.around_attention(x, read_prefix)
    x = layer.around_cross(x, lambda y: attend_to_memory(layer.cross, y, memory, padding))
    return layer.around_feedforward(x, layer.feedforward)


def empty_cache(attention: SelfAttention, like: Tensor, prefixes: int) -> Tensor:
    """Return a cache (N, ., W) for N = `prefixes` prefixes, with the type and device of `like`."""
    return like.new_empty(prefixes, _ROOM, sum(attention.query_key_value.widths[1:]))


def _with_room(cache: Tensor, position: int, rows: Tensor | None) -> Tensor:
    """Return the first positions of a cache, of the prefixes numbered `rows` (N',) or of all, with room for more."""
    longer = cache.new_empty(len(cache) if rows is None else len(rows), position + _ROOM, cache.size(2))
    before, after = cache[:, :position], longer[:, :position]
    if rows is None:
        after.copy_(before)
    else:
        # Written to its place at once: half the time of a selection that is then copied.
        torch.index_select(before, 0, rows, out=after)
    return longer


def self_attention_step(attention: SelfAttention, x: Tensor, cache: Tensor, position: int) -> Tensor:
    """One new position x (N, 1, D), which enters the cache, and attends to those before it and itself -> (N, 1, D).

    cache: (N, more than `position`, W).
    """
    query_width, *widths = attention.query_key_value.widths
    query, key_value = attention.query_key_value(x).split([query_width, sum(widths)], dim=-1)
    query = attention.split_heads(query, attention.d_k)
    if attention.rotary is not None:
        # Keys are cached rotated: by their own position, which never changes.
        key, value = torch.split(key_value, widths, dim=-1)
        query = attention.rotary(query, position)
        key = attention.rotary(attention.split_heads(key, attention.d_k), position)
        key_value = torch.cat([key.transpose(1, 2).flatten(2), value], dim=-1)
    cache[:, position : position + 1] = key_value
    keys, values = torch.split(cache[:, : position + 1], widths, dim=-1)
    keys, values = attention.split_heads(keys, attention.d_k), attention.split_heads(values, attention.d_v)
    # No mask: every cached position comes before the query, and no prefix is shorter than another.
    return attention.join_heads(fused_attention(query, keys, values, mask=None, causal=False))


def project_memory(attention: CrossAttention, encoded: Tensor, source: Packing) -> tuple[Tensor, Tensor]:
    """Encoder states (M, D) -> keys and values as `attend_few` takes them: computed once per sentence."""
    projected = torch.split(source.pad(attention.key_value(encoded)), attention.key_value.widths, dim=-1)
    key, value = attention.split_heads(projected[0], attention.d_k), attention.split_heads(projected[1], attention.d_v)
    return keys_for_few(key).contiguous(), value.contiguous()


def attend_to_memory(
    attention: CrossAttention, x: Tensor, memory: tuple[Tensor, Tensor], padding: Tensor | None
) -> Tensor:
    """x (B, k, D), one position of each of a sentence's k hypotheses -> (B, k, D). padding: as in the state."""
    # The k hypotheses of a sentence are k queries to one memory, which is never copied for each of them.
    query = attention.split_heads(attention.query(x), attention.d_k)  # (B, H, k, K)
    return attention.join_heads(attend_few(query, *memory, padding))
