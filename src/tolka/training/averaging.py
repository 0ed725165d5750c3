"""Weights that are means of weights: over the updates while training (EMA), over checkpoints at its end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """Exponential moving average of a model's weights (Polyak and Juditsky 1992; Izmailov et al. 2018 on why)."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        """decay: share of the average that an update keeps; starts lower, so that the first weights are soon gone."""
        self.decay = decay
        self._weights: list[Tensor] = list(model.parameters())
        self.average = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def update(self, number: int) -> None:
        """Take in the weights after update `number` (from 1): average += (1 - d) * (weights - average)."""
        decay = min(self.decay, number / (number + 10))
        torch._foreach_lerp_(list(self.average.values()), self._weights, 1.0 - decay)


@contextmanager
def weights_of(model: nn.Module, other: Mapping[str, Tensor]) -> Iterator[None]:
    """The model with other weights, name by name, for the length of a block; its own come back."""
    weights = {name: weight for name, weight in model.named_parameters() if name in other}
    own = {name: weight.detach().clone() for name, weight in weights.items()}
    _put(weights, other)
    try:
        yield
    finally:
        _put(weights, own)


@torch.no_grad()
def _put(weights: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    for name, weight in weights.items():
        weight.copy_(values[name])
