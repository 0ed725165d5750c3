"""Loss and gradient in chunks of tokens, so that no (N, V) matrix ever stands in memory.

Shapes: N target tokens, D model width, V vocabulary, C tokens of one chunk.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.kernels.matmul import rounded_row_count
from tolka.models.base import Seq2Seq

# One chunk's logits fill about this many values: 16 MB in fp32, which a CPU's last cache level still holds. A GPU has
# no such cache and wants fewer, larger kernels.
_CHUNK_VALUES = 4 * 2**20
_CHUNKS_ON_GPU = 16


def chunk_size(model: Seq2Seq, features: Tensor) -> int:
    """Return the number of tokens whose logits are computed at once."""
    values = _CHUNK_VALUES * (1 if features.device.type == "cpu" else _CHUNKS_ON_GPU)
    return max(1, values // model.vocabulary_size)


def split_rows(tensor: Tensor, chunk: int) -> tuple[Tensor, ...]:
    """Return views of `chunk` rows each; the last may have fewer."""
    pieces: tuple[Tensor, ...] = torch.split(tensor, chunk)
    return pieces


def equal_chunk_size(count: int, chunk: int) -> int:
    """Return a chunk size, about `chunk` at most, with which the chunks of `count` tokens are equally large."""
    return rounded_row_count(-(-count // -(-count // chunk)))


def fp32_or_wider(x: Tensor) -> Tensor:
    """Convert bf16 and fp16 to fp32; float64, used in tests, stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _padded(rows: Tensor, count: int) -> Tensor:
    """Append rows of zeros to (C, D), up to `count`."""
    return F.pad(rows, (0, 0, 0, count - len(rows))) if len(rows) < count else rows


# The logits of each pass and the targets of one chunk -> loss sum, nll sum; the logits become d loss / d logits.
Gradients = Callable[[list[Tensor], Tensor], tuple[Tensor, Tensor]]


class _GradientGiven(torch.autograd.Function):
    """A scalar whose gradient with respect to `x` is `gradient`.

    It stands in for `torch.autograd.grad` with grad_outputs, which would import SymPy (0.3 s).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, gradient: Tensor) -> Tensor:
        ctx.gradient = gradient
        return x.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.gradient, None


class ChunkedLoss(torch.autograd.Function):
    """The loss sums and, in the same pass, their gradients, so that no (N, V) matrix ever stands in memory.

    inputs: the features (N, D) of each pass, then the output layer's weights, so that autograd passes their gradients
    on (and DDP's hooks fire). `logits_of` must depend on nothing else. steady: pad the last chunk to the size of the
    others; the padding rows do not count.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits_of: Callable[[Tensor], Tensor],
        gradients_of: Gradients,
        targets: Tensor,
        chunk: int,
        steady: bool,
        passes: int,
        *inputs: Tensor,
    ) -> tuple[Tensor, Tensor]:
        features, parameters = inputs[:passes], inputs[passes:]
        totals = fp32_or_wider(features[0].new_zeros(2))
        feature_gradients: list[list[Tensor]] = [[] for _ in features]
        weight_gradients = [torch.zeros_like(p) for p in parameters]
        pieces = [split_rows(each, chunk) for each in features]
        for wanted, *rows in zip(split_rows(targets, chunk), *pieces, strict=True):
            count = len(wanted)
            leaves = [_padded(row.detach(), chunk if steady else count).requires_grad_() for row in rows]
            with torch.enable_grad():
                logits = [logits_of(leaf) for leaf in leaves]
            upstream = [fp32_or_wider(each.detach()) for each in logits]
            loss, nll = gradients_of([each[:count] for each in upstream], wanted)
            totals += torch.stack([loss, nll])
            for each in upstream:
                each[count:] = 0.0
            pairs = [(each, gradient.to(each.dtype)) for each, gradient in zip(logits, upstream, strict=True)]
            with torch.enable_grad():
                ends = [_GradientGiven.apply(*pair) for pair in pairs]  # type: ignore[no-untyped-call]
            found = torch.autograd.grad(ends, (*leaves, *parameters))
            for gradients, part in zip(feature_gradients, found, strict=False):
                gradients.append(part[:count])
            for total, part in zip(weight_gradients, found[passes:], strict=True):
                total.add_(part)
        ctx.save_for_backward(*(torch.cat(gradients) for gradients in feature_gradients), *weight_gradients)
        loss_sum, nll_sum = totals.unbind()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        return (None,) * 6 + tuple(saved * upstream[0] for saved in ctx.saved_tensors)
