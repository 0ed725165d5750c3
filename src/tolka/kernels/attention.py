"""softmax(Q K^T / sqrt(d_k)) V by the fastest kernel of the device; `tolka.nn.attention` computes it by the formula.

Shapes: B sentences, T queries, S keys, N rows of queries, M rows of keys, H heads, K and V widths of one head's keys
and values.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.kernels.dropout import dropout
from tolka.kernels.packing import Packing
from tolka.kernels.short_attention import attend_short, suits_short

_FLASH_WIDTH = 192  # most of a head; of wider ones some cards have no backward pass
_ENCODED_AT_ONCE = 1024  # source positions


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, dropout_rate: float = 0.0
) -> Tensor:
    """Attend: query (B, H, T, K), key (B, H, S, K), value (B, H, S, V) -> (B, H, T, V).

    mask: bool, broadcastable to (B, H, T, S), true where a query may attend; on a GPU what is added to the scores.
    causal: hide later positions; there is no mask then. dropout_rate: on the weights.
    """
    # torch's kernel would draw the mask from its slow generator (see `tolka.kernels.dropout`).
    if dropout_rate > 0.0 and query.device.type == "cpu":
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
        if causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return dropout(scores.softmax(-1), dropout_rate, training=True) @ value
    if suits_short(query, key):
        return attend_short(query, key, value, mask, causal)
    mask = None if mask is None else mask[..., : key.size(2)]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, dropout_p=dropout_rate)


def takes_packed(dtype: torch.dtype, device: torch.device, key_width: int, value_width: int) -> bool:
    """Return whether `packed_attention` takes packed rows without copying them, as flash attention does on a GPU."""
    return (
        device.type == "cuda"
        and dtype in (torch.bfloat16, torch.float16)
        and key_width == value_width <= _FLASH_WIDTH
        and key_width % 8 == 0
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(device) >= (8, 0)
    )


def packed_attention(
    query: Tensor, key: Tensor, value: Tensor, rows: Packing, source: Packing, causal: bool, dropout_rate: float
) -> Tensor:
    """Attend within each sentence: query (N, H, K) in `rows`, key and value (M, H, .) in `source` -> (N, H * V)."""
    if rows.tokens is not None and query.device.type == "cuda":
        offsets, longest = (rows.offsets, source.offsets), (rows.longest, source.longest)
        # torch's function for sentences of several lengths has no dropout.
        context, *_ = torch.ops.aten._flash_attention_forward(
            query, key, value, *offsets, *longest, dropout_rate, causal, False
        )
        return context.flatten(1)
    # Padding follows all tokens of its sentence: the causal mask hides it from them already.
    mask = None if causal else source.mask_for(query)
    query, key, value = (
        packing.pad(x).transpose(1, 2) for packing, x in ((rows, query), (source, key), (source, value))
    )
    context = fused_attention(query, key, value, mask, causal, dropout_rate)
    return rows.pack(context.transpose(1, 2).flatten(2))


def keys_for_few(key: Tensor) -> Tensor:
    """Return the keys (B, H, S, K) of a source as `attend_few` takes them: made once, not at every step."""
    return key if key.device.type != "cpu" else key.transpose(-1, -2) / math.sqrt(key.size(-1))


def padding_for_few(source: Packing, key: Tensor) -> Tensor | None:
    """Return the padding of sources as `attend_few` takes it, for keys like these; None where there is none."""
    mask = source.mask_for(key)
    return mask if mask is None or key.device.type != "cpu" else ~mask


def attend_few(query: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None) -> Tensor:
    """Attend with the few queries of a decoding step: (B, H, k, K) -> (B, H, k, V).

    keys (B, H, K, S): K^T / sqrt(d_k); values (B, H, S, V); both contiguous. padding: (B, 1, 1, S), true where there is
    no source token. On a GPU both are as `keys_for_few` and `padding_for_few` return them.
    """
    if query.device.type != "cpu":
        return fused_attention(query, keys, values, padding, causal=False)
    scores = query @ keys  # (B, H, k, S)
    if padding is not None:
        scores = scores.masked_fill_(padding, float("-inf"))
    return scores.softmax(dim=-1) @ values


def encoded_at_once(source: Tensor) -> int:
    """Return how many of the sentences (B, S) to encode at once before decoding."""
    if source.device.type != "cpu":
        return len(source)
    # So that activations stay in the cache: 0.37 s for 1000 sentences of 15 tokens, where all at once take 0.56.
    return max(1, _ENCODED_AT_ONCE // source.size(1))
