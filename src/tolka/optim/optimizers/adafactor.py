"""Adafactor: torch's, and on a GPU one that does not wait for it."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adafactor

from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig, trained_parameters


class StackedAdafactor(Adafactor):
    """torch's Adafactor, whose weights of one shape are updated together.

    torch's own reads two norms of each weight on the CPU. `found_inf`, a tensor on the device, is 1 where an update is
    to change no weight and no moment; its step is counted all the same.
    """

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; `closure`, the base class' argument, is not supported."""
        assert closure is None
        for group in self.param_groups:
            lists: list[list[Any]] = [[] for _ in range(6)]
            self._init_group(group, *lists)
            by_shape = defaultdict(list)
            for of_weight in zip(*lists, strict=True):
                by_shape[of_weight[0].shape, float(of_weight[5])].append(of_weight)  # and by its steps so far
            for weights in by_shape.values():
                self._update(group, weights)

    def _update(self, group: dict[str, Any], of_weights: list[tuple[Any, ...]]) -> None:
        """Update weights of one shape. of_weights: as torch's `_init_group` lists them, with their moments."""
        # Rows and columns are of matrices, variances of vectors.
        weights, gradients, rows, columns, variances, steps = map(list, zip(*of_weights, strict=True))
        torch._foreach_add_(steps, 1.0)
        step, (least_root, least_size) = float(steps[0]), group["eps"]  # the steps are kept on the CPU
        gradient, applied = torch.stack(gradients), 1.0 if self.found_inf is None else 1.0 - self.found_inf
        if self.found_inf is not None:
            gradient = torch.where(self.found_inf > 0, 0.0, gradient)  # 0 times NaN is NaN
        of_one = tuple(range(1, gradient.dim()))
        share = step ** group["beta2_decay"] * applied
        if gradient.dim() > 2:
            square = gradient.square()
            row, column = _moved(rows, square.mean(-1, True), share), _moved(columns, square.mean(-2, True), share)
            estimate = row @ column / row.mean(dim=-2, keepdim=True).clamp_(min=least_root)
        else:
            estimate = _moved(variances, gradient.square(), share)
        update = estimate.clamp(min=least_root**2).rsqrt_().mul_(gradient)
        too_large = (_root_mean_square(update, of_one) / group["d"]).clamp_(min=1.0)
        size = _root_mean_square(torch.stack(weights), of_one).clamp_(min=least_size)
        update *= size / too_large * (-min(group["lr"], step**-0.5) * applied)
        torch._foreach_add_(weights, list(update.unbind()))


def _moved(moments: list[Tensor], towards: Tensor, share: Tensor | float) -> Tensor:
    """Move moments by a share of the way; return them, stacked."""
    moved = torch.stack(moments).lerp_(towards, share)
    torch._foreach_copy_(moments, list(moved.unbind()))
    return moved


def _root_mean_square(values: Tensor, dimensions: tuple[int, ...]) -> Tensor:
    return values.square().mean(dim=dimensions, keepdim=True).sqrt_()


@OPTIMIZERS.register("adafactor")
@dataclass(frozen=True)
class AdafactorConfig(OptimizerConfig):
    """Adafactor (Shazeer and Stern 2018): m + n numbers for an (m, n) matrix, where Adam keeps 2mn.

    Without momentum, and as the paper's section 9 recommends. The rate is never above 1 / sqrt(update), its equation.
    """

    name: str = "adafactor"
    """the kind of optimiser: adafactor"""
    lr: float = 0.01
    """the peak learning rate of every schedule, times the size (root mean square) of the matrix that it moves"""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        weights = trained_parameters(model)
        kind = StackedAdafactor if weights[0].device.type == "cuda" else Adafactor
        # The paper's epsilon_1, 1e-30, is of squares; torch squares what it is given.
        return kind(weights, lr=self.lr, eps=(1e-15, 1e-3))
