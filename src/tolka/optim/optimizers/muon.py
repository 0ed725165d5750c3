"""Muon: momentum whose matrices are orthogonalised before they change the weights."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tolka.models.base import Seq2Seq
from tolka.nn.linear import FusedLinear
from tolka.nn.rnn_cells import RecurrentLayer
from tolka.optim.optimizers.base import OPTIMIZERS, trained_parameters, with_decayed_matrices
from tolka.optim.optimizers.of_torch import AdamWConfig
from tolka.options.checks import share_below_one
from tolka.system.device import has_fast_bf16

# Of Jordan et al.: five steps bring singular values from 0.004 of the matrix' norm up to between 0.68 and 1.21.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_STEPS = 5
_LEAST_NORM = 1e-7  # against a division by zero
_HALF_FROM = 128  # rows and columns, from which on bf16 pays: 12 matrices of 256 x 256 take 36 ms, and 78 in fp32
_SIZE = 0.2  # root mean square of an update over its rate; AdamW's is 0.2 to 0.4 (Liu et al. 2025, section 2.2)


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum (Jordan et al. 2024) for matrices, AdamW for the other groups.

    found_inf: a tensor on the device, 1 where an update is to change nothing, so that nobody has to wait for it.
    """

    _step_supports_amp_scaling = True
    found_inf: Tensor | None = None

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: Iterable[dict[str, Any]],
        widths: Mapping[Tensor, Sequence[int]],
        lr: float,
        momentum: float,
        weight_decay: float,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        """others: AdamW's groups. widths: rows of each matrix, for parameters that stack several."""
        group = {"params": list(matrices), "momentum": momentum, "weight_decay": weight_decay}
        self.adamw = torch.optim.AdamW(others, lr=lr, betas=betas, eps=eps, fused=True)
        super().__init__([group, *self.adamw.param_groups], {"lr": lr})
        self.widths = widths

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; `closure`, the base class' argument, is not supported."""
        assert closure is None
        matrices, *others = self.param_groups
        self._update_matrices(matrices)
        # At every step, because `load_state_dict` replaces both objects.
        self.adamw.param_groups, self.adamw.state = others, self.state
        self.adamw.found_inf = self.found_inf  # type: ignore[attr-defined]
        self.adamw.step()

    def _update_matrices(self, group: dict[str, Any]) -> None:
        weights = [weight for weight in group["params"] if weight.grad is not None]
        found, momentum = self.found_inf, group["momentum"]
        applied = 1.0 if found is None else 1.0 - found
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor, Tensor]]] = {}
        for weight in weights:
            if "mean" not in self.state[weight]:
                self.state[weight]["mean"] = torch.zeros_like(weight)
            # W_Q, W_K and W_V, or the gates of a recurrence, are orthogonalised each by itself.
            rows = self.widths.get(weight, [weight.size(0)])
            split = (each.split(rows) for each in (weight, weight.grad, self.state[weight]["mean"]))
            for parts in zip(*split, strict=True):
                by_shape.setdefault(parts[0].shape, []).append(parts)
        if weights:
            torch._foreach_mul_(weights, 1.0 - group["lr"] * group["weight_decay"] * applied)
        # All matrices of one shape in a batch; torch.optim.Muon takes one after the other.
        for shape, triples in by_shape.items():
            own, gradients, means = map(list, zip(*triples, strict=True))
            gradient = torch.stack(gradients)
            if found is not None:
                gradient = torch.where(found > 0, 0.0, gradient)  # 0 times NaN is NaN
            mean = torch.stack(means).lerp_(gradient, (1.0 - momentum) * applied)
            torch._foreach_copy_(means, list(mean.unbind()))
            directions = orthogonalise(gradient.lerp(mean, momentum))  # Nesterov momentum
            # An orthogonal (m, n) matrix has a root mean square of 1 / sqrt(max(m, n)): so scaled, an update is as
            # large as AdamW's, and one rate does for both (Liu et al. 2025, equation 4).
            directions *= group["lr"] * _SIZE * max(shape) ** 0.5 * applied
            torch._foreach_sub_(own, list(directions.unbind()))


def orthogonalise(matrices: Tensor) -> Tensor:
    """(k, m, n) -> (k, m, n): map each matrix U S V^T to about U V^T, by the Newton-Schulz iteration."""
    # X X^T is the smaller Gram matrix of a wide X.
    tall = matrices.size(-2) > matrices.size(-1)
    x = matrices.mT if tall else matrices
    # The Frobenius norm is at least the largest singular value: all are at most 1, as the iteration needs.
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=_LEAST_NORM)
    # The iteration needs no more precision than bf16 (Jordan et al. 2024), where the device multiplies it.
    if x.dtype == torch.float32 and min(x.shape[-2:]) >= _HALF_FROM and has_fast_bf16(x.device):
        x = x.bfloat16()
    for _ in range(_STEPS):
        # x <- a x + (b G + c G^2) x, which maps each singular value s to a s + b s^3 + c s^5.
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return (x.mT if tall else x).to(matrices.dtype)


@OPTIMIZERS.register("muon")
@dataclass(frozen=True)
class MuonConfig(AdamWConfig):
    """Muon (Jordan et al. 2024) for the matrices inside the layers, AdamW for all else.

    Embeddings, the output layer, norms and biases are AdamW's, for which alone beta1, beta2 and eps count; the rate
    and the decay do for both (Liu et al. 2025).
    """

    name: str = "muon"
    """the kind of optimiser: muon"""
    momentum: float = 0.95
    """share of the running mean of a matrix' gradients that is kept"""

    def __post_init__(self) -> None:
        super().__post_init__()
        share_below_one(self, "optimizer", "momentum")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        modules = list(model.modules())
        tables: set[Tensor] = {module.weight for module in modules if isinstance(module, nn.Embedding)}
        tables |= set(model.logits_parameters()) if isinstance(model, Seq2Seq) else set()
        inside = {weight for weight in trained_parameters(model) if weight.dim() == 2 and weight not in tables}
        matrices, others = with_decayed_matrices(model, self.weight_decay)
        fused = [module for module in modules if isinstance(module, FusedLinear | RecurrentLayer)]
        return Muon(
            [weight for weight in matrices["params"] if weight in inside],
            [{**matrices, "params": [weight for weight in matrices["params"] if weight not in inside]}, others],
            {weight: module.widths for module in fused for weight in module.stacked()},
            self.lr,
            self.momentum,
            self.weight_decay,
            (self.beta1, self.beta2),
            self.eps,
        )
