"""softmax(Q K^T / sqrt(d_k)) V by the fastest kernel of the device; `tolka.nn.attention` computes it by the formula.

Over short sentences on a CPU that is batched matrix multiplications: torch's fused kernel loops over sentences and
heads one by one, which takes longer, and it returns gradients in a layout that is slow to rearrange.

Shapes: B sentences, T queries, S keys, N rows of queries, M rows of keys, H heads, K and V widths of one head's keys
and values.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from tolka.kernels.dropout import dropout
from tolka.kernels.packing import Packing

_FLASH_WIDTH = 192  # most of a head; of wider ones some cards have no backward pass
# Numbers of keys up to which this is faster (forward only, and with backward): 4096 tokens of width 256 take 14 ms
# instead of 25 in sentences of 15, 20 instead of 24 in sentences of 120.
_MAX_KEYS, _MAX_KEYS_TRAINING = 32, 128
_DTYPES = (torch.float32, torch.float64, torch.bfloat16)


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


def takes_packed(weight: Tensor, key_width: int, value_width: int) -> bool:
    """Return whether `packed_attention` takes packed rows without copying them, as flash attention does on a GPU.

    weight: one of the model's, for its device and dtype.
    """
    return (
        weight.device.type == "cuda"
        and weight.dtype in (torch.bfloat16, torch.float16)
        and key_width == value_width <= _FLASH_WIDTH
        and key_width % 8 == 0
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(weight.device) >= (8, 0)
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


def suits_short(query: Tensor, key: Tensor) -> bool:
    """Return whether `attend_short` is faster for query (B, H, T, K) and key (B, H, S, K)."""
    max_keys = _MAX_KEYS_TRAINING if torch.is_grad_enabled() and query.requires_grad else _MAX_KEYS
    return query.device.type == "cpu" and query.dtype in _DTYPES and query.size(2) > 1 and key.size(2) <= max_keys


def attend_short(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Attend: query (B, H, T, K), key (B, H, S, K), value (B, H, S, V) -> (B, H, T, V).

    mask: bool, broadcastable to (B, H, T, S), true where a query may attend. causal: instead of a mask.
    """
    if causal:
        mask = torch.ones(query.size(2), key.size(2), dtype=torch.bool).tril()
    bias = None if mask is None else query.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))
    return _Attention.apply(query, key, value, bias)  # type: ignore[no-untyped-call]


class _Attention(torch.autograd.Function):
    """softmax(Q K^T / sqrt(d_k)) V with its gradient.

    With P the weights and G the gradient of P V: dV = P^T G, dS = P * (G V^T - rowsum(P * G V^T)), dQ = dS K and
    dK = dS^T Q, both over sqrt(d_k).
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        heads, ctx.dtype = query.size(1), query.dtype
        query, key, value = _flat(query), _flat(key), _flat(value)
        weights = query.new_empty(len(query), query.size(1), key.size(1))
        scale = 1 / math.sqrt(query.size(2))
        # The scaling is part of the multiplication: no pass over the scores of its own.
        torch.baddbmm(weights, query, key.transpose(1, 2), beta=0, alpha=scale, out=weights)
        # Several times as fast as masked_fill.
        if bias is not None:
            _split_heads(weights, heads).add_(bias)
        torch.softmax(weights, dim=-1, out=weights)
        ctx.save_for_backward(query, key, value, weights)
        ctx.heads, ctx.scale = heads, scale
        return _by_position(weights @ value, heads, ctx.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, weights = ctx.saved_tensors
        gradient = _flat(gradient)
        value_gradient = weights.transpose(1, 2) @ gradient
        weights_gradient = gradient @ value.transpose(1, 2)
        scores_gradient = torch._softmax_backward_data(weights_gradient, weights, -1, weights.dtype).mul_(ctx.scale)
        gradients = scores_gradient @ key, scores_gradient.transpose(1, 2) @ query, value_gradient
        query_gradient, key_gradient, value_gradient = (_by_position(each, ctx.heads, ctx.dtype) for each in gradients)
        return query_gradient, key_gradient, value_gradient, None


def _flat(x: Tensor) -> Tensor:
    """Return (B, H, L, W) as (B * H, L, W), contiguous; bf16 becomes fp32."""
    # For multiplications in fp32, oneDNN compiles no kernel per shape.
    return _contiguous(x, torch.float32 if x.dtype == torch.bfloat16 else x.dtype).flatten(0, 1)


def _by_position(x: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """Return (B * H, L, W) as (B, H, L, W), with a position's heads side by side in memory, as in linear layers."""
    return _contiguous(_split_heads(x, heads).transpose(1, 2), dtype).transpose(1, 2)


def _contiguous(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return x as a contiguous tensor of `dtype`, copied at most once."""
    return x.contiguous() if x.dtype == dtype else x.to(dtype, memory_format=torch.contiguous_format)


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """View (B * H, L, W) as (B, H, L, W)."""
    return x.view(-1, heads, *x.shape[1:])
