"""Low-rank adapters (Hu et al. 2022): W + scale * B A, with W at rest and two thin matrices trained."""

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.nn.linear import FusedLinear


class LoraLinear(FusedLinear):
    """A linear layer with an adapter of rank r: x (W + scale * B A)^T + b, scale = alpha / r.

    A (r, in) starts at random, B (out, r) at zero, so that at first nothing has changed. Its `state_dict` is that of a
    plain layer with the adapter merged into the weight; loading one puts it into W and starts the adapter anew.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        """Takes over the layer's own weight and bias."""
        widths = linear.widths if isinstance(linear, FusedLinear) else [linear.out_features]
        super().__init__(linear.in_features, widths)
        self.weight, self.bias = linear.weight, linear.bias
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.lora_b = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out); the two thin products cost r / in + r / out of the layer's own."""
        return super().forward(input) + F.linear(F.linear(input, self.lora_a), self.lora_b) * self.scale

    def merged(self) -> Tensor:
        """The weight (out, in) of the plain layer that computes the same."""
        with torch.no_grad():
            return self.weight + self.scale * self.lora_b @ self.lora_a

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.merged()
        for name in ("lora_a", "lora_b"):
            del destination[prefix + name]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        plain = {**state_dict, f"{prefix}lora_a": self.lora_a, f"{prefix}lora_b": torch.zeros_like(self.lora_b)}
        super()._load_from_state_dict(plain, prefix, *rest)


def add_adapters(model: nn.Module, rank: int, alpha: float) -> int:
    """Give every linear layer an adapter and put all else to rest; returns how many layers there were."""
    model.requires_grad_(False)
    found = [(parent, name, child) for parent, name, child in _children(model) if isinstance(child, nn.Linear)]
    for parent, name, child in found:
        setattr(parent, name, LoraLinear(child, rank, alpha))
    return len(found)


def _children(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            yield parent, name, child


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """What the adapters have learnt, with the scale worked into B: name of the layer's weight -> A and B."""
    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear):
            tensors[f"{name}.weight.a"] = module.lora_a.detach()
            tensors[f"{name}.weight.b"] = module.lora_b.detach() * module.scale
    return tensors
