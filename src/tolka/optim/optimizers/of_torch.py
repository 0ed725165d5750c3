"""Torch's optimizers: Adam, AdamW, and gradient descent with momentum."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig, trained_parameters, with_decayed_matrices
from tolka.options.checks import share_below_one, zero_or_more


@dataclass(frozen=True)
class MomentsConfig(OptimizerConfig):
    """Options that Adam and AdamW share; the betas are those of Vaswani et al. (2017)."""

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
        # The decay acts on the weights themselves: as a part of the gradient, Adam would divide it by sqrt(v), too.
        groups = with_decayed_matrices(model, self.weight_decay)
        # Fused: one kernel for all parameters instead of many for each.
        return AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)


@OPTIMIZERS.register("adam")
@dataclass(frozen=True)
class AdamConfig(MomentsConfig):
    """Adam (Kingma and Ba 2015), as Vaswani et al. (2017) trained: no decay of weights."""

    name: str = "adam"
    """the kind of optimiser: adam"""

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        betas = self.beta1, self.beta2
        return Adam(trained_parameters(model), lr=self.lr, betas=betas, eps=self.eps, fused=True)


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
    weight_decay: float = 0.0
    """this times a weight is added to its gradient, in matrices; norms and biases have none"""

    def __post_init__(self) -> None:
        super().__post_init__()
        share_below_one(self, "optimizer", "momentum")
        zero_or_more(self, "optimizer", "off", "weight_decay")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        groups = with_decayed_matrices(model, self.weight_decay)
        # Only a fused kernel skips an update without waiting for the device; FSDP's shards have none.
        fused = all(
            weight.device.type == "cuda" and not hasattr(weight, "full_tensor") for weight in model.parameters()
        )
        optimizer = SGD(groups, lr=self.lr, momentum=self.momentum, fused=fused)
        if fused and self.momentum:
            # When fp16's first update overflows, torch's fused kernel skips it and keeps a momentum that was never
            # written, which the next update uses (seen in torch 2.13).
            for weight in trained_parameters(model):
                optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        return optimizer
