"""Dropout masks that are cheap to draw on a CPU."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_LEVELS = 65536  # 16 random bits per value: the rate is exact to 1/65536


def keep_mask(shape: torch.Size, rate: float) -> Tensor:
    """Return an int8 mask: 1 keeps a value, 0 drops it, with probability round(rate * 65536) / 65536.

    The stream is seeded by one draw from torch's default CPU generator, so `torch.manual_seed` decides the masks and
    saving torch's generator is enough to resume them.
    """
    # torch draws a CPU mask value by value from one serial generator: on 4096 x 1024 values that took 84 ms where the
    # linear layer beside it took 14. To compare 16-bit slices of an SFC64 stream with a threshold takes 7, the
    # multiplication included.
    seed = int(torch.randint(2**63 - 1, ()).item())
    count = shape.numel()
    raw = np.random.Generator(np.random.SFC64(seed)).integers(0, 2**64, size=-(-count // 4), dtype=np.uint64)
    is_kept = raw.view(np.uint16)[:count] >= round(rate * _LEVELS)
    return torch.from_numpy(is_kept.view(np.int8)).view(shape)


class _MaskedScale(torch.autograd.Function):
    """x * mask * scale; the mask is saved for the backward pass with one byte per value."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.scale = scale
        return mask.to(x.dtype).mul_(scale).mul_(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        return mask.to(gradients[0].dtype).mul_(ctx.scale).mul_(gradients[0]), None, None


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """Apply inverted dropout (Srivastava et al. 2014): zero at `rate`, scale the rest by 1 / (1 - rate)."""
    if not training or rate == 0.0:
        return x
    if x.device.type != "cpu":  # torch draws and applies the mask in one fused kernel
        return F.dropout(x, rate)
    return _MaskedScale.apply(x, keep_mask(x.shape, rate), 1.0 / (1.0 - rate))  # type: ignore[no-untyped-call]
