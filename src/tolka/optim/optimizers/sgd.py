"""Stochastic gradient descent with momentum."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import SGD

from tolka.optim.optimizers.base import OPTIMIZERS, OptimizerConfig, with_decayed_matrices
from tolka.options.checks import share_below_one, zero_or_more


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
        # Not fused: when fp16's first update overflows, torch's fused kernel skips it and keeps a momentum that was
        # never written, which the next update uses (seen in torch 2.13).
        groups = with_decayed_matrices(model, self.weight_decay)
        return SGD(groups, lr=self.lr, momentum=self.momentum)
