"""Attention over packed rows, by a GPU's kernel for sentences of unlike length (FlashAttention-2, Dao 2023).

Shapes: B sentences, N rows of queries, M of keys, H heads, K width of a head.
"""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.nn.packing import FusedPacking
from tolka.runtime import is_out_of_memory, torch_random_kept

_HALVES = (torch.bfloat16, torch.float16)
_TRIED = ([3, 1, 9], [2, 5, 4])  # tokens of sentences, targets and sources, that the kernel is tried on
_TOLERANCE = 0.05  # between results in half precision and in fp32, of numbers about 1


def attend_packed(
    query: Tensor, key: Tensor, value: Tensor, rows: FusedPacking, seen: FusedPacking, causal: bool, rate: float = 0.0
) -> Tensor:
    """As `attend`, sentence by sentence: query (N, H, K) in `rows`, key and value (M, H, K) in `seen` -> (N, H, K).

    On a GPU, in half precision, where `has_packed_attention` says so. rate: dropout on the weights.
    """
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, rows.starts, seen.starts, rows.longest, seen.longest, rate, causal, False
    )[0]
    return attended


@functools.cache
def has_packed_attention(device: torch.device, dtype: torch.dtype, key_width: int, value_width: int) -> bool:
    """Whether `attend_packed` does what it should there: tried on a few short sentences, forward and backward.

    Asked of the device itself, as the kernel is not for every GPU, type and width, and torch does not promise it.
    """
    return device.type == "cuda" and dtype in _HALVES and key_width == value_width and works(device, dtype, key_width)


def works(device: torch.device, dtype: torch.dtype, width: int) -> bool:
    """Whether `attend_packed` gives there what it should, and its gradient."""
    with (
        torch_random_kept(device),
        torch.inference_mode(False),
        torch.autocast(device.type, enabled=False),
        torch.enable_grad(),
    ):
        try:
            return all(_agrees(device, dtype, width, causal) for causal in (False, True))
        except (RuntimeError, NotImplementedError, TypeError) as error:
            if is_out_of_memory(error):  # says nothing of the kernel
                raise
            return False


def _agrees(device: torch.device, dtype: torch.dtype, width: int, causal: bool) -> bool:
    """Results and gradients of the kernel, and of the plain one sentence by sentence."""
    targets, sources = _TRIED
    if causal:
        sources = targets
    lengths = (targets, sources, sources)
    given = [torch.randn(sum(each), 2, width, device=device).to(dtype) for each in lengths]
    upstream = torch.randn(given[0].shape, device=device)
    rows, seen = (FusedPacking(torch.tensor(each, device=device), max(each)) for each in (targets, sources))

    def packed(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attend_packed(query, key, value, rows, seen, causal).float()

    def plain(*inputs: Tensor) -> Tensor:
        sentences = zip(*(torch.split(x, each) for x, each in zip(inputs, lengths, strict=True)), strict=True)
        return torch.cat([_attend(query, key, value, causal) for query, key, value in sentences])

    found, expected = (
        _with_gradients(packed, given, upstream),
        _with_gradients(plain, [each.float() for each in given], upstream),
    )
    pairs = zip(found, expected, strict=True)
    return all(torch.allclose(one.float(), other, rtol=_TOLERANCE, atol=_TOLERANCE) for one, other in pairs)


def _with_gradients(compute: Callable[..., Tensor], inputs: list[Tensor], upstream: Tensor) -> list[Tensor]:
    leaves = [each.requires_grad_() for each in inputs]
    result = compute(*leaves)
    return [result, *torch.autograd.grad((result * upstream).sum(), leaves)]


def _attend(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> Tensor:
    """One sentence: (T, H, K), (S, H, K), (S, H, K) -> (T, H, K)."""
    query, key, value = (each.transpose(0, 1) for each in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, is_causal=causal).transpose(0, 1)
