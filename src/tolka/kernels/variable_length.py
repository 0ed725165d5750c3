"""Attention over packed rows by torch's kernel for variable-length sequences (FlashAttention-2, Dao 2023), on a GPU.

Shapes: N rows of queries, M of keys, H heads, K width of a head.
"""

import functools

import torch
from torch import Tensor

from tolka.kernels.packing import VariableLengthPacking
from tolka.system.memory import is_out_of_memory
from tolka.system.randomness import torch_random_kept


def attend_packed(
    query: Tensor, key: Tensor, value: Tensor, rows: VariableLengthPacking, source: VariableLengthPacking, causal: bool
) -> Tensor:
    """Attend within each sentence: query (N, H, K) in `rows`, key and value (M, H, K) in `source` -> (N, H, K).

    Needs a GPU and half precision: see `supports_packed_attention`.
    """
    from torch.nn.attention.varlen import varlen_attn  # since torch 2.11; nothing else needs it

    window = (-1, 0) if causal else (-1, -1)
    attended = varlen_attn(
        query, key, value, rows.starts, source.starts, rows.longest, source.longest, window_size=window
    )
    assert isinstance(attended, Tensor)
    return attended


@functools.cache
def supports_packed_attention(device: torch.device, dtype: torch.dtype, key_width: int, value_width: int) -> bool:
    """Return whether `attend_packed` runs on the device, forward and backward, by trying it."""
    if device.type != "cuda" or dtype not in (torch.bfloat16, torch.float16) or key_width != value_width:
        return False
    with torch_random_kept(device), torch.inference_mode(False), torch.enable_grad():
        try:
            rows = VariableLengthPacking(torch.tensor([3, 1], device=device), 3)
            x = torch.randn(4, 2, key_width, device=device, dtype=dtype, requires_grad=True)
            (gradient,) = torch.autograd.grad(attend_packed(x, x, x, rows, rows, causal=True).sum(), x)
        except (ImportError, RuntimeError, NotImplementedError, TypeError) as error:
            if is_out_of_memory(error):  # not a failure of the kernel
                raise
            return False
        return bool(gradient.isfinite().all())
