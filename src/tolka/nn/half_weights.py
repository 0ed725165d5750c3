"""The weights of a model in half precision for the length of a pass, copied by a few launches."""

from collections.abc import Iterator
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


def _converted(tensors: Any, dtype: torch.dtype) -> tuple[Tensor, ...]:
    copies = tuple(torch.empty_like(tensor, dtype=dtype) for tensor in tensors)
    # One kernel for many tensors, where autocast launches one for each weight and one for each gradient.
    if copies:
        torch._foreach_copy_(copies, tensors)
    return copies


@contextmanager
def half_weights(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Let a model compute in `dtype` during a block that has the forward and the backward pass; weights stay fp32.

    The gradients of the weights are summed in fp32, over the passes of an update.
    """
    places = [
        (module, name)
        for module in model.modules()
        for name, weight in module._parameters.items()
        if weight is not None
    ]
    weights = {weight: None for module, name in places if (weight := module._parameters[name]) is not None}
    trained = [weight for weight in weights if weight.requires_grad]
    frozen = [weight for weight in weights if not weight.requires_grad]
    copies = dict(zip(trained, _Copies.apply(dtype, *trained), strict=True)) if trained else {}
    copies |= zip(frozen, _converted([weight.detach() for weight in frozen], dtype), strict=True)
    originals = [(module, name, module._parameters[name]) for module, name in places]
    try:
        for module, name, weight in originals:
            module._parameters[name] = copies[weight]
        yield
    finally:
        for module, name, weight in originals:
            module._parameters[name] = weight
