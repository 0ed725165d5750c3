"""Attention over short sentences as batched matrix multiplications, for a CPU.

There torch's fused kernel handles sentences and heads one by one, which takes longer than the multiplications while
these are small, and returns gradients in a layout that is slow to reassemble.

Shapes: B sentences, T queries, S keys, H heads, K and V widths of one head's keys and values.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# Keys up to which it is the faster way (forward alone, and backward too): 4096 tokens of 256 take 14 ms instead of 25
# in sentences of 15, 20 instead of 24 in sentences of 120.
_MOST_KEYS, _MOST_KEYS_TRAINING = 32, 128
_REGISTERS = {"AVX512": 16, "AVX2": 8}  # of the processor: numbers in fp32 that one holds
_WORTH_WIDENING = 0.6  # share of a register: fewer keys are not worth the wider products
_TYPES = (torch.float32, torch.float64, torch.bfloat16)


def suits_short(query: Tensor, key: Tensor) -> bool:
    """Return whether `attend_short` is faster for query (B, H, T, K) and key (B, H, S, K)."""
    most = _MOST_KEYS_TRAINING if torch.is_grad_enabled() and query.requires_grad else _MOST_KEYS
    return (
        query.device.type == "cpu"
        and query.dtype in _TYPES
        and query.size(2) > 1
        and key.size(2) <= most
        and not torch.compiler.is_compiling()
    )


def attend_short(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V: query (B, H, T, K), key (B, H, S, K), value (B, H, S, V) -> (B, H, T, V).

    mask: bool, broadcastable to (B, H, T, S), true where a query may look.
    """
    bias = None
    if mask is not None:
        bias = query.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))
    if causal:
        ahead = query.new_full((query.size(2), key.size(2)), float("-inf")).triu_(1)
        bias = ahead if bias is None else bias + ahead
    spare = _spare(key.size(2))
    if spare:
        bias = F.pad(query.new_zeros(1, key.size(2)) if bias is None else bias, (0, spare), value=float("-inf"))
    attended: Tensor = _Attention.apply(query, key, value, bias, spare)  # type: ignore[no-untyped-call]
    return attended


def _spare(keys: int) -> int:
    """Return by how many keys to pad: torch's softmax over fewer keys than a register holds is not vectorised.

    It takes 1.4 ms over 15 keys of 14400 queries and heads, and 0.1 ms over 16.
    """
    register = _REGISTERS.get(torch.backends.cpu.get_cpu_capability(), 0)
    return register - keys if _WORTH_WIDENING * register <= keys < register else 0


class _Attention(torch.autograd.Function):
    """Attention with its gradient. With P the weights and G the gradient of P V: dV = P^T G, dS = P * (G V^T - rowsum(P
    * G V^T)), dQ = dS K and dK = dS^T Q, both over sqrt(d_k).

    spare: zero keys and values appended to the others; the bias hides them from the queries.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, spare: int) -> Tensor:
        heads, ctx.keys = query.size(1), key.size(2)
        ctx.dtype = query.dtype
        query, key, value = _flat(query), _flat(key, spare), _flat(value, spare)
        weights = query.new_empty(len(query), query.size(1), key.size(1))
        scale = 1 / math.sqrt(query.size(2))
        torch.baddbmm(weights, query, key.transpose(1, 2), beta=0, alpha=scale, out=weights)
        if bias is not None:  # to add is several times as fast as to fill
            _of_heads(weights, heads).add_(bias)
        torch.softmax(weights, dim=-1, out=weights)
        ctx.save_for_backward(query, key, value, weights)
        ctx.heads, ctx.scale = heads, scale
        return _by_position(weights @ value, heads, ctx.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, weights = ctx.saved_tensors
        gradient = _flat(gradient)
        of_value = weights.transpose(1, 2) @ gradient
        of_weights = gradient @ value.transpose(1, 2)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype).mul_(ctx.scale)
        of_query, of_key = of_scores @ key, of_scores.transpose(1, 2) @ query
        gradients = of_query, of_key[:, : ctx.keys], of_value[:, : ctx.keys]
        of_query, of_key, of_value = (_by_position(each, ctx.heads, ctx.dtype) for each in gradients)
        return of_query, of_key, of_value, None, None


def _flat(x: Tensor, spare: int = 0) -> Tensor:
    """(B, H, L, W) -> (B * H, L + spare, W), contiguous, padded with zeros; bf16 as fp32, for which nothing is
    compiled.
    """
    dtype = torch.float32 if x.dtype == torch.bfloat16 else x.dtype
    if not spare:
        return _in_one_piece(x, dtype).flatten(0, 1)
    wider = x.new_zeros(*x.shape[:2], x.size(2) + spare, x.size(3), dtype=dtype)
    wider[:, :, : x.size(2)] = x
    return wider.flatten(0, 1)


def _by_position(x: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """(B * H, L, W) -> (B, H, L, W), with the heads of a position side by side in memory, as for linear layers."""
    return _in_one_piece(_of_heads(x, heads).transpose(1, 2), dtype).transpose(1, 2)


def _in_one_piece(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a contiguous tensor of the dtype, with at most one copy."""
    return x.contiguous() if x.dtype == dtype else x.to(dtype, memory_format=torch.contiguous_format)


def _of_heads(x: Tensor, heads: int) -> Tensor:
    """(B * H, L, W) -> (B, H, L, W), a view."""
    return x.view(-1, heads, *x.shape[1:])
