"""Matrix multiplication of linear layers in fp32, by whichever library is faster on this processor.

torch uses Intel's MKL, which uses AVX-512 on Intel's processors only. On other makers' processors that have it, oneDNN,
which torch includes as well, takes half the time.

Shapes: N rows, I input and O output features.
"""

import functools
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_CPU_FACTS = Path("/proc/cpuinfo")
_MAKER = "AuthenticAMD"  # of processors with AVX-512 that MKL does not use, and oneDNN does
_LEAST_WORK = 2**23  # multiplications of a search's step: fewer are no slower by MKL
_WIDE = 1000  # numbers, beside which turning a matrix of a few hundred is soon done


@functools.cache
def onednn_is_faster() -> bool:
    """Return whether oneDNN is faster here; decided by the kind of processor, so that every run decides alike."""
    libraries = torch.backends.mkl, torch.backends.mkldnn
    if not all(library.is_available() for library in libraries):
        return False
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    try:
        return _MAKER in _CPU_FACTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def row_counts_are_compiled() -> bool:
    """Return whether oneDNN now compiles a kernel for each new number of rows, which takes 0.3 ms and 0.6 MB.

    Little of that memory is used; but blocks that stay between others fragment the heap.
    """
    return torch.is_autocast_enabled("cpu") or (torch.is_grad_enabled() and onednn_is_faster())


def rounded_row_count(count: int) -> int:
    """Round up to one of 16 sizes per power of two, so that oneDNN compiles few kernels."""
    step = 8
    while 32 * step <= count:
        step *= 2
    return (count + step - 1) // step * step


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W^T + b: x (..., I), weight (O, I), bias (O,) -> (..., O). Equal to F.linear, up to rounding."""
    if not _suits(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _searched(x, weight, bias, _LEAST_WORK)
    result: Tensor = _Product.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _suits(x: Tensor, weight: Tensor) -> bool:
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and onednn_is_faster()
        and not torch.is_autocast_enabled("cpu")
        and x.dim() > 1
        and x.numel() > 0
    )


def _multiplied(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute `matmul` without a gradient."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


def _searched(x: Tensor, weight: Tensor, bias: Tensor | None, least: int) -> Tensor:
    """Compute `matmul` in a decoding step, where row counts vary. least: multiplications that are worth oneDNN."""
    if x.numel() * weight.size(0) < least:
        return F.linear(x, weight, bias)
    rows = x.flatten(0, -2)
    return _multiplied(with_padding_rows(rows), weight, bias)[: rows.size(0)].view(x.shape[:-1] + weight.shape[:1])


def with_padding_rows(rows: Tensor) -> Tensor:
    """(N, I) -> (N', I): append zero rows, so that there are few numbers of rows."""
    idle = rounded_row_count(rows.size(0)) - rows.size(0)
    return F.pad(rows, [0, 0, 0, idle]) if idle else rows


class _Product(torch.autograd.Function):
    """x W^T + b. With G its gradient: dx = G W, dW = G^T x, db = the sum of G's rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _multiplied(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = gradient.flatten(0, -2)
        return (
            _multiplied(gradient, weight.t()) if of_x else None,
            _of_weight(rows, x.flatten(0, -2), weight) if of_weight else None,
            rows.sum(dim=0) if of_bias else None,
        )


def _of_weight(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Compute G^T x, (O, I).

    For oneDNN's linear layer torch transposes the left matrix in memory, with one thread. That is little beside a
    multiplication with a wide matrix. For two narrow matrices, the weight gradient of a 1x1 convolution is the same and
    needs no transposition. With a single thread torch computes such convolutions elsewhere.
    """
    wide, narrow = max(weight.shape), min(weight.shape)
    if wide >= _WIDE or torch.get_num_threads() == 1 or narrow == 1:
        if gradient.size(1) <= x.size(1):
            return _multiplied(gradient.t(), x.t())
        return _multiplied(x.t(), gradient.t()).t()
    points = (each[None, None].permute(0, 3, 1, 2) for each in (gradient.contiguous(), x.contiguous()))
    _, of_filter, _ = torch.ops.aten.convolution_backward(
        *points, weight[:, :, None, None], None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, (False, True, False)
    )
    filters: Tensor = of_filter
    return filters[:, :, 0, 0]
