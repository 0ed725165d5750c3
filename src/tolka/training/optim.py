"""Optimisers by name."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import nn

from tolka.checks import share_below_one, zero_or_more
from tolka.errors import ConfigError
from tolka.registry import Registry


@dataclass(frozen=True)
class OptimizerConfig(ABC):
    """Options of one optimiser."""

    lr: float = 0.001
    """the peak learning rate of every schedule (scheduler=noam takes its own lr_init instead)"""

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ConfigError(f"optimizer.lr ({self.lr}) must be above 0; 0.001 suits most models")

    @abstractmethod
    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """An optimiser of the model's parameters."""


OPTIMIZERS: Registry[OptimizerConfig] = Registry("optimizer", "tolka.training")


@OPTIMIZERS.register("adamw")
@dataclass(frozen=True)
class AdamWConfig(OptimizerConfig):
    """AdamW (Loshchilov and Hutter 2019) with the betas of Vaswani et al. (2017)."""

    name: str = "adamw"
    """the kind of optimiser: adamw"""
    beta1: float = 0.9
    """decay of the mean of gradients"""
    beta2: float = 0.98
    """decay of the mean of squared gradients"""
    eps: float = 1e-9
    """added to the root of the second moment"""
    weight_decay: float = 0.01
    """decoupled decay of matrices; norms and biases have none"""

    def __post_init__(self) -> None:
        super().__post_init__()
        share_below_one(self, "optimizer", "beta1", "beta2")
        zero_or_more(self, "optimizer", "off", "eps", "weight_decay")

    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """See OptimizerConfig.build; fused: one kernel for all parameters instead of many for each."""
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": self.weight_decay},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=True)
