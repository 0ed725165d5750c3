"""Averaged weights: over the updates while training (EMA), and over checkpoints at its end."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Ema:
    """Exponential moving average of a model's weights (Polyak and Juditsky 1992; Izmailov et al. 2018 explain why)."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        """decay: share of the average that an update keeps; it starts lower (see `update`)."""
        self.decay = decay
        self._model = model
        self._weights: list[Tensor] = list(model.parameters())
        self.average = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def update(self, number: int) -> None:
        """Average the weights after update `number` (from 1): average += (1 - d) * (weights - average)."""
        # With 0.999 from the start, the random first weights would still be 0.37 of the average at update 1000.
        decay = min(self.decay, number / (number + 10))
        # One kernel for all weights.
        torch._foreach_lerp_(list(self.average.values()), self._weights, 1.0 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model the average as its weights, for the length of a block."""
        with preserved_weights(self._model):
            for name, weight in self._model.named_parameters():
                weight.data.copy_(self.average[name])
            yield


@contextmanager
def preserved_weights(model: nn.Module) -> Iterator[None]:
    """Restore the model's weights after a block, whatever it does to them."""
    saved = {weight: weight.detach().clone() for weight in model.parameters()}
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, value in saved.items():
                weight.copy_(value)
