"""The contract of optimizers, and their registry."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tolka.errors import ConfigError
from tolka.options.registry import Registry
from tolka.options.settings import setting


@dataclass(frozen=True)
class OptimizerConfig(ABC):
    """Options of one optimizer."""

    lr: float = setting(
        0.001, needs=("scheduler.USES_LR", "a schedule whose peak it is (this one has scheduler.lr_init)")
    )
    """the peak learning rate of every schedule (scheduler=noam takes its own lr_init instead)"""

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise ConfigError(f"optimizer.lr ({self.lr}) must be above 0; the default is {type(self).lr:g}")

    @abstractmethod
    def build(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return an optimizer of the model's trained parameters."""


OPTIMIZERS: Registry[OptimizerConfig] = Registry("optimizer", "tolka.optim.optimizers")


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are not frozen."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def with_decayed_matrices(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return two parameter groups: matrices decay, norms and biases do not."""
    # Decay pulls towards 0, and a norm's gain is neutral at 1.
    parameters = trained_parameters(model)
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
