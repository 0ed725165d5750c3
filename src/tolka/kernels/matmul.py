"""Matrix products of linear layers in fp32, by the library that is the faster one on this processor.

torch gives them to Intel's MKL, which uses AVX-512 on Intel's processors alone. Where another maker's has it, oneDNN,
which torch brings along as well, makes the same products in half the time.

Shapes: N rows, I numbers in, O out.
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
    """Whether oneDNN has the faster products on this processor; known by its kind, so that every run finds the same."""
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
    """Whether products are now prepared for each number of rows anew: by oneDNN, 0.3 ms and 0.6 MB each.

    Not the memory itself is what counts, of which little is used; but blocks that stay, between others that come and
    go, keep those from fitting in where they were before.
    """
    return torch.is_autocast_enabled("cpu") or (torch.is_grad_enabled() and onednn_is_faster())


def rounded_row_count(count: int) -> int:
    """The next of few numbers of rows, 16 between any and its double: a sixteenth more at most, or seven."""
    step = 8
    while 32 * step <= count:
        step *= 2
    return (count + step - 1) // step * step


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: x (..., I), weight (O, I), bias (O,) -> (..., O). As F.linear, but for rounding."""
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
    """As `product`, without a gradient."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


def _searched(x: Tensor, weight: Tensor, bias: Tensor | None, least: int) -> Tensor:
    """As `product` at a search's step: another number of rows at nearly each. least: multiplications."""
    if x.numel() * weight.size(0) < least:
        return F.linear(x, weight, bias)
    rows = x.flatten(0, -2)
    return _multiplied(with_padding_rows(rows), weight, bias)[: rows.size(0)].view(x.shape[:-1] + weight.shape[:1])


def with_padding_rows(rows: Tensor) -> Tensor:
    """(N, I) -> (N', I): idle ones behind them, so that there are few numbers of rows."""
    idle = rounded_row_count(rows.size(0)) - rows.size(0)
    return F.pad(rows, [0, 0, 0, idle]) if idle else rows


class _Product(torch.autograd.Function):
    """With G the gradient of x W^T + b: dx = G W, dW = G^T x, db = the sum of G's rows."""

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
    """G^T x, (O, I).

    For oneDNN's linear layer torch turns the left matrix round in memory, with one thread. That is little beside a
    product with a wide matrix; of two narrow ones, the gradient of a convolution over single points is the same and
    needs no turning. (With a single thread torch has such convolutions made elsewhere.)
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
