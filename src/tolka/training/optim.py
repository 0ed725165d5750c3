"""Optimisers by name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW

from tolka.checks import share_below_one, zero_or_more
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.nn.linear import FusedLinear
from tolka.nn.recurrent import Recurrence
from tolka.registry import Registry
from tolka.training.adafactor import Adafactor
from tolka.training.muon import Muon


@dataclass(frozen=True)
class OptimizerConfig(ABC):
    """Options of one optimiser."""

    lr: float = 0.001
    """the peak learning rate of every schedule (scheduler=noam takes its own lr_init instead)"""

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ConfigError(f"optimizer.lr ({self.lr}) must be above 0; the default is {type(self).lr:g}")

    @abstractmethod
    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """An optimiser of the model's parameters."""


OPTIMIZERS: Registry[OptimizerConfig] = Registry("optimizer", "tolka.training")


@dataclass(frozen=True)
class MomentsConfig(OptimizerConfig):
    """What Adam and AdamW share; the betas are those of Vaswani et al. (2017)."""

    beta1: float = 0.9
    """decay of the mean of gradients"""
    beta2: float = 0.98
    """decay of the mean of squared gradients"""
    eps: float = 1e-9
    """added to the root of the second moment"""

    def __post_init__(self) -> None:
        super().__post_init__()
        share_below_one(self, "optimizer", "beta1", "beta2")
        zero_or_more(self, "optimizer", "off", "eps")


@OPTIMIZERS.register("adamw")
@dataclass(frozen=True)
class AdamWConfig(MomentsConfig):
    """AdamW (Loshchilov and Hutter 2019)."""

    name: str = "adamw"
    """the kind of optimiser: adamw"""
    weight_decay: float = 0.01
    """decoupled decay of matrices; norms and biases have none"""

    def __post_init__(self) -> None:
        super().__post_init__()
        zero_or_more(self, "optimizer", "off", "weight_decay")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """See OptimizerConfig.build; fused: one kernel for all parameters instead of many for each."""
        groups = _matrices_decay(model, self.weight_decay)
        return AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)


@OPTIMIZERS.register("adam")
@dataclass(frozen=True)
class AdamConfig(MomentsConfig):
    """Adam (Kingma and Ba 2015), as Vaswani et al. (2017) trained: no decay of weights."""

    name: str = "adam"
    """the kind of optimiser: adam"""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """See OptimizerConfig.build; fused as AdamW is."""
        betas = self.beta1, self.beta2
        return Adam(_trained(model), lr=self.lr, betas=betas, eps=self.eps, fused=True)


@OPTIMIZERS.register("sgd")
@dataclass(frozen=True)
class SGDConfig(OptimizerConfig):
    """Gradient descent with momentum: velocity = momentum * velocity + gradient; weight -= rate * velocity."""

    name: str = "sgd"
    """the kind of optimiser: sgd"""
    lr: float = 0.1
    """the peak learning rate of every schedule (scheduler=noam takes its own lr_init instead)"""
    momentum: float = 0.9
    """share of the velocity that is kept; 0 = off"""
    nesterov: bool = False
    """move by gradient + momentum * velocity instead (Sutskever et al. 2013)"""
    weight_decay: float = 0.0
    """this times a weight is added to its gradient, in matrices; norms and biases have none"""

    def __post_init__(self) -> None:
        super().__post_init__()
        share_below_one(self, "optimizer", "momentum")
        zero_or_more(self, "optimizer", "off", "weight_decay")
        if self.nesterov and not self.momentum:
            raise ConfigError("optimizer.nesterov (True) needs a velocity: set optimizer.momentum above 0, as in 0.9")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """See OptimizerConfig.build.

        Not fused: when fp16's first update overflows, torch's fused kernel skips it and keeps a momentum that was
        never written, of which the next update makes weights (seen in torch 2.13).
        """
        groups = _matrices_decay(model, self.weight_decay)
        return SGD(groups, lr=self.lr, momentum=self.momentum, nesterov=self.nesterov)


@OPTIMIZERS.register("adafactor")
@dataclass(frozen=True)
class AdafactorConfig(OptimizerConfig):
    """Adafactor (Shazeer and Stern 2018): m + n numbers for an (m, n) matrix, where Adam keeps 2mn."""

    name: str = "adafactor"
    """the kind of optimiser: adafactor"""
    lr: float = 0.01
    """the peak learning rate of every schedule, times the size (root mean square) of the matrix that it moves"""
    decay: float = 0.8
    """squared gradients are averaged with the decay 1 - step ** -decay"""
    clip: float = 1.0
    """ceiling on the root mean square of an update, before the learning rate"""
    least_size: float = 0.001
    """a parameter counts as at least this large, so that zeros can move"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("decay", "clip", "least_size"):
            if getattr(self, key) <= 0:
                raise ConfigError(f"optimizer.{key} ({getattr(self, key)}) must be above 0")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """See OptimizerConfig.build."""
        return Adafactor(_trained(model), self.lr, self.decay, self.clip, self.least_size)


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
        """See OptimizerConfig.build."""
        modules = list(model.modules())
        tables: set[Tensor] = {module.weight for module in modules if isinstance(module, nn.Embedding)}
        tables |= set(model.logits_parameters()) if isinstance(model, Seq2Seq) else set()
        inside = {weight for weight in _trained(model) if weight.dim() == 2 and weight not in tables}
        matrices, others = _matrices_decay(model, self.weight_decay)
        fused = [module for module in modules if isinstance(module, FusedLinear | Recurrence)]
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


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _matrices_decay(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two parameter groups: matrices decay, norms and biases do not."""
    parameters = _trained(model)
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


def state_tensors(optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str]) -> dict[str, Tensor]:
    """The optimiser's state on the CPU: "optimizer.<parameter>.<key>" -> tensor. names: of the parameters."""
    return {
        f"optimizer.{names[parameter]}.{key}": torch.as_tensor(value).detach().cpu()
        for parameter, moments in optimizer.state.items()
        for key, value in moments.items()
    }


def load_state_tensors(
    optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str], tensors: Mapping[str, Tensor]
) -> None:
    """Put back what `state_tensors` gave, by torch's own way, which knows what lives beside a parameter."""
    own = optimizer.state_dict()
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    for number, parameter in enumerate(parameters):
        prefix = f"optimizer.{names[parameter]}."
        moments = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        own["state"].pop(number, None)
        if moments:
            own["state"][number] = moments
    optimizer.load_state_dict(own)
