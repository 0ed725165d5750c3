"""Loss and gradient in chunks of tokens, so that no (N, V) matrix is ever in memory.

Shapes: N target tokens, D model width, V vocabulary, C tokens of one chunk.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tolka.kernels.matmul import rounded_row_count
from tolka.models.base import Seq2Seq
from tolka.system.device import device_memory

# One chunk's logits fill about this many values: 16 MB in fp32, which fits a CPU's last-level cache.
_CHUNK_VALUES = 4 * 2**20
_GPU_BYTES = 256  # of a GPU's memory for each value, which takes 8 to 12 of them


def chunk_size(model: Seq2Seq, features: Tensor) -> int:
    """Return the number of tokens whose logits are computed at once."""
    # Each chunk reads and writes the gradient of the whole output layer: on a GPU they are as large as memory allows.
    values = max(_CHUNK_VALUES, device_memory(features.device) // _GPU_BYTES)
    return max(1, values // model.vocabulary_size)


def equal_chunk_size(count: int, chunk: int) -> int:
    """Return a size of about `chunk` or less, rounded, that splits `count` tokens into nearly equal chunks."""
    return rounded_row_count(-(-count // -(-count // chunk)))


def fp32_or_wider(x: Tensor) -> Tensor:
    """Convert bf16 and fp16 to fp32; keep float64, in which tests compare."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


# The logits and the targets of one chunk -> loss sum, nll sum, d loss / d logits.
Gradients = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class ChunkedLoss(torch.autograd.Function):
    """The loss sum and the nll sum; the gradients of the loss sum are computed in the same pass, chunk by chunk.

    weights: the output layer's, which must be all that `logits_of` depends on besides the features (N, D). equal_rows:
    whether the last chunk is padded to as many rows as the others.
    """

    # The weights are inputs so that autograd accumulates their gradients, and DDP's hooks fire.

    @staticmethod
    def forward(
        ctx: Any,
        logits_of: Callable[[Tensor], Tensor],
        gradients_of: Gradients,
        targets: Tensor,
        chunk: int,
        equal_rows: bool,
        features: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        totals = fp32_or_wider(features.new_zeros(2))
        feature_gradients = []
        # In fp32, as many chunks may be added up.
        weight_gradients = [fp32_or_wider(torch.zeros_like(weight)) for weight in weights]
        # The loss is a sum over tokens, so that each chunk's gradient is final at once: its logits are freed before the
        # next chunk's are computed.
        for chunk_targets, rows in zip(targets.split(chunk), features.split(chunk), strict=True):
            count = len(chunk_targets)
            leaf = rows.detach()
            if equal_rows and count < chunk:
                leaf = F.pad(leaf, (0, 0, 0, chunk - count))  # rows of zeros
            leaf.requires_grad_()
            with torch.enable_grad():
                logits = logits_of(leaf)
            loss, nll, upstream = gradients_of(logits.detach(), chunk_targets)
            totals += torch.stack([loss, nll])
            gradient, *of_weights = torch.autograd.grad(logits, (leaf, *weights), upstream)
            feature_gradients.append(gradient[:count])
            for total, gradient in zip(weight_gradients, of_weights, strict=True):
                total.add_(gradient)
        ctx.save_for_backward(torch.cat(feature_gradients), *weight_gradients)
        # Copies, as FSDP takes no views.
        loss_sum, nll_sum = (total.clone() for total in totals)
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        # Computed in `forward` already; what follows the loss, as 1 / tokens, is a factor. None: the first five inputs.
        return (None,) * 5 + tuple(saved * upstream[0] for saved in ctx.saved_tensors)
