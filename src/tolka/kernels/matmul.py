"""Matrix multiplication of linear layers in fp32, by the library that is faster on this processor.

torch uses Intel's MKL, which uses AVX-512 on Intel's processors only. On other processors with AVX-512, oneDNN, which
is part of torch as well, takes half the time.

Shapes: N rows, I inputs, O outputs.
"""

import functools
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_CPU_INFO = Path("/proc/cpuinfo")
_VENDOR = "AuthenticAMD"  # of processors on which oneDNN uses AVX-512 and MKL does not
_MIN_MULTIPLICATIONS = 2**23  # in a decoding step; with fewer, MKL is as fast
_WIDE = 1000  # from this width, the multiplication takes far longer than the transposition of the other matrix


@functools.cache
def onednn_is_faster() -> bool:
    """Return whether oneDNN is faster on this processor."""
    # Decided by the vendor, not by a trial, so that every run decides, and rounds, the same.
    libraries = torch.backends.mkl, torch.backends.mkldnn
    if not all(library.is_available() for library in libraries):
        return False
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    try:
        return _VENDOR in _CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def row_counts_are_compiled() -> bool:
    """Return whether oneDNN now compiles a kernel for each new number of rows."""
    # 0.3 ms and 0.6 MB each, and more memory by fragmentation: kernels are allocated between blocks that are freed.
    return torch.is_autocast_enabled("cpu") or (torch.is_grad_enabled() and onednn_is_faster())


def rounded_row_count(count: int) -> int:
    """Round up to one of 16 sizes per power of two: at most a sixteenth more, or seven rows."""
    # The step doubles with the count: 8 up to 255, 16 up to 511 and so on.
    step = 8
    while 32 * step <= count:
        step *= 2
    return (count + step - 1) // step * step


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W^T + b, as F.linear does up to rounding: x (..., I), weight (O, I), bias (O,) -> (..., O)."""
    if not _suits(x, weight):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled():
        return _Matmul.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    if x.numel() * weight.size(0) < _MIN_MULTIPLICATIONS:
        return F.linear(x, weight, bias)
    # In decoding the number of rows changes at nearly every step: rounded up, oneDNN compiles few kernels.
    rows = x.flatten(0, -2)
    return _onednn_linear(with_padding_rows(rows), weight, bias)[: rows.size(0)].view(x.shape[:-1] + weight.shape[:1])


def matmul_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute max(0, x W^T + b): x (..., I), weight (O, I), bias (O,) -> (..., O)."""
    if x.device.type == "cpu" or torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type):
        return torch.relu_(matmul(x, weight, bias))
    # One kernel, which torch's own transformer layers use as well.
    return torch._addmm_activation(bias, x.flatten(0, -2), weight.t()).view(*x.shape[:-1], -1)


def _suits(x: Tensor, weight: Tensor) -> bool:
    # Under autocast the multiplication is in bf16.
    return (
        x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and onednn_is_faster()
        and not torch.is_autocast_enabled("cpu")
        and x.dim() > 1
        and x.numel() > 0
    )


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def with_padding_rows(rows: Tensor) -> Tensor:
    """(N, I) -> (N', I): append rows of zeros up to `rounded_row_count`, so that oneDNN compiles few kernels."""
    padding = rounded_row_count(rows.size(0)) - rows.size(0)
    return F.pad(rows, [0, 0, 0, padding]) if padding else rows


class _Matmul(torch.autograd.Function):
    """x W^T + b with its gradient. With G its upstream gradient: dx = G W, dW = G^T x, db = the sum of G's rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn_linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        x_needs, weight_needs, bias_needs = ctx.needs_input_grad
        rows = gradient.flatten(0, -2)
        return (
            _onednn_linear(gradient, weight.t()) if x_needs else None,
            _weight_gradient(rows, x.flatten(0, -2), weight) if weight_needs else None,
            rows.sum(dim=0) if bias_needs else None,
        )


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Return G^T x, (O, I)."""
    wide, narrow = max(weight.shape), min(weight.shape)
    # For oneDNN's linear layer torch transposes the left matrix in memory, with one thread, which costs little compared
    # with a multiplication by a wide matrix. With a single thread, torch computes convolutions by another library.
    if wide >= _WIDE or torch.get_num_threads() == 1 or narrow == 1:
        if gradient.size(1) <= x.size(1):
            return _onednn_linear(gradient.t(), x.t())
        return _onednn_linear(x.t(), gradient.t()).t()
    # The weight gradient of a 1x1 convolution: the same result without a transposition.
    images = (rows[None, None].permute(0, 3, 1, 2) for rows in (gradient.contiguous(), x.contiguous()))
    _, filter_gradient, _ = torch.ops.aten.convolution_backward(
        *images, weight[:, :, None, None], None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, (False, True, False)
    )
    return filter_gradient[:, :, 0, 0]
