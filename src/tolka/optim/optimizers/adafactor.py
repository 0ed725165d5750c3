"""Adafactor with an external learning rate."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig, trained_parameters

# Of Shazeer and Stern (2018): section 9 recommends them.
_DECAY = 0.8  # squared gradients are averaged with the decay 1 - step ** -0.8
_CLIP = 1.0  # ceiling on the root mean square of an update, before the learning rate
_LEAST_SIZE = 0.001  # epsilon_2: smallest size assumed for a parameter, so that one of zeros can change
_LEAST_SQUARE = 1e-30  # epsilon_1, against a division by zero


class Adafactor(torch.optim.Optimizer):
    """Algorithms 4 and 5 of Shazeer and Stern (2018), without momentum, with an external learning rate.

    Shapes: (..., m, n) of a parameter with two dimensions or more.
    """

    # torch.optim.Adafactor keeps the rate below 1 / sqrt(step), a second schedule on top of the chosen one, and waits
    # for the GPU twice for each parameter.

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; `closure`, the base class' argument, is not supported."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"])

    def _update(self, parameter: Tensor, gradient: Tensor, rate: float) -> None:
        state = self.state[parameter]
        # On the CPU, so that reading it waits for no GPU; `load_state_dict` leaves a tensor of this name where it is.
        state["step"] = state.get("step", torch.tensor(0.0)) + 1
        new_share = state["step"].item() ** -_DECAY
        squares = gradient.square().add_(_LEAST_SQUARE)
        if parameter.dim() >= 2:
            rows = _averaged(state, "rows", squares.mean(dim=-1, keepdim=True), new_share)  # (..., m, 1)
            columns = _averaged(state, "columns", squares.mean(dim=-2, keepdim=True), new_share)  # (..., 1, n)
            # The squares' estimate is rows @ columns / mean(rows), of rank 1: m + n values stand for m * n.
            update = gradient * (rows / rows.mean(dim=-2, keepdim=True)).rsqrt() * columns.rsqrt()
        else:
            update = gradient * _averaged(state, "squares", squares, new_share).rsqrt()
        # An old estimate of the squares, much below the new ones, would make an update too large.
        excess = (_root_mean_square(update) / _CLIP).clamp(min=1.0)
        # The rate is relative to the parameter's own size.
        size = _root_mean_square(parameter).clamp(min=_LEAST_SIZE)
        parameter.sub_(update.mul_(rate * size / excess))


def _averaged(state: dict[str, Any], key: str, new: Tensor, share: float) -> Tensor:
    """Update and return the running mean under `key`; share: weight of `new`. The first value is the mean itself."""
    state[key] = state[key].lerp_(new, share) if key in state else new
    return state[key]


def _root_mean_square(tensor: Tensor) -> Tensor:
    """Return the root mean square of a tensor, ()."""
    return tensor.square().mean().sqrt()


@OPTIMIZERS.register("adafactor")
@dataclass(frozen=True)
class AdafactorConfig(OptimizerConfig):
    """Adafactor (Shazeer and Stern 2018): m + n numbers for an (m, n) matrix, where Adam keeps 2mn."""

    name: str = "adafactor"
    """the kind of optimiser: adafactor"""
    lr: float = 0.01
    """the peak learning rate of every schedule, times the size (root mean square) of the matrix that it moves"""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        return Adafactor(trained_parameters(model), self.lr)
