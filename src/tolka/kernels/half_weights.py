"""The weights of a model in half precision for the length of a pass, copied by a few launches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class _Copies(torch.autograd.Function):
    """Weights -> their copies in another dtype; the copies' gradients -> the weights'."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return _converted(weights, dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        converted = iter(_converted([each for each in gradients if each is not None], torch.float32))
        return (None, *(None if each is None else next(converted) for each in gradients))


def _converted(tensors: tuple[Tensor, ...] | list[Tensor], dtype: torch.dtype) -> tuple[Tensor, ...]:
    # One kernel for many tensors, where autocast launches one for each weight and one for each gradient.
    copies = tuple(torch.empty_like(tensor, dtype=dtype) for tensor in tensors)
    torch._foreach_copy_(copies, tensors)
    return copies


@contextmanager
def half_weights(parts: Sequence[nn.Module], dtype: torch.dtype) -> Iterator[None]:
    """Let modules compute in `dtype` during a block that has the forward and the backward pass; weights stay fp32.

    The gradients of the weights are summed in fp32, over the passes of an update. A part's come together; those of a
    weight that it shares with an earlier part come with that part's.
    """
    places, copies = [], dict[nn.Parameter, Tensor]()
    for part in parts:
        own = [
            (module._parameters, name, weight)
            for module in part.modules()
            for name, weight in module._parameters.items()
            if weight is not None
        ]
        weights = list({weight: None for _, _, weight in own if weight not in copies})  # a shared one once
        halves: Sequence[Tensor] = _Copies.apply(dtype, *weights)  # type: ignore[no-untyped-call]
        # Of a frozen weight no gradient is wanted.
        both = zip(weights, halves, strict=True)
        copies |= {weight: half if weight.requires_grad else half.detach() for weight, half in both}
        places += own
    try:
        for parameters, name, weight in places:
            parameters[name] = copies[weight]  # type: ignore[assignment]
        yield
    finally:
        for parameters, name, weight in places:
            parameters[name] = weight
