"""Adapters: a change of a frozen weight W is trained. Low-rank ones (Hu et al. 2022) train W + scale * B A."""

import hashlib
import math
from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.nn.linear import FusedLinear

_PREFIX = "lora_"  # of the names of an adapter's own parameters


class Adapted(nn.Module):
    """A module with a frozen `weight` and parameters that change it, whose names begin with lora_."""

    @abstractmethod
    def merged(self) -> Tensor:
        """Return the weight of the plain module that computes the same."""


class LoraLinear(FusedLinear, Adapted):
    """A linear layer with an adapter of rank r: x (W + scale * B A)^T + b, scale = alpha / r; A (r, in), B (out, r)."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        """linear: the layer to adapt, whose weight and bias are taken over."""
        widths = linear.widths if isinstance(linear, FusedLinear) else [linear.out_features]
        super().__init__(linear.in_features, widths)
        self.weight, self.bias = linear.weight, linear.bias
        # Over r, so that another rank needs no other learning rate (section 4.1).
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        # With B = 0 the output is at first that of the plain layer; with A = 0 too, neither would have a gradient.
        self.lora_b = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        # As nn.Linear fills its weights, and the authors' code A.
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        # (x A^T) B^T costs r / in + r / out of the layer's own multiplication; B A first would be a matrix (out, in).
        return super().forward(input) + F.linear(F.linear(input, self.lora_a), self.lora_b) * self.scale

    def stacked(self) -> list[Tensor]:
        """Return the weight and B, which has the same rows."""
        return [*super().stacked(), self.lora_b]

    def merged(self) -> Tensor:
        """Return the plain layer's weight (out, in), W + scale * B A."""
        with torch.no_grad():
            return self.weight + self.scale * self.lora_b @ self.lora_a


def add_adapters(model: nn.Module, rank: int, alpha: float) -> int:
    """Freeze the model and give every linear layer an adapter; return the number of layers."""
    model.requires_grad_(False)
    count = 0
    # Lists, because modules are replaced while they are walked through.
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(parent, name, LoraLinear(layer, rank, alpha))
                count += 1
    return count


def has_adapters(model: nn.Module) -> bool:
    """Return whether any weight has an adapter."""
    return any(isinstance(module, Adapted) for module in model.modules())


def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the `state_dict` of the plain model that computes the same, with all adapters merged."""
    state = {name: tensor for name, tensor in model.state_dict().items() if not _is_own(name)}
    merged = {module: module.merged() for module in model.modules() if isinstance(module, Adapted)}
    # A shared embedding has several names.
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, Adapted):
            state[f"{name}.weight"] = merged[module]
    return state


def base_digest(model: nn.Module) -> str:
    """Return the SHA-256 of all weights except the adapters."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if not _is_own(name):
            digest.update(f"{name} {tuple(tensor.shape)} ".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def adapter_parameters(model: nn.Module) -> int:
    """Return how many numbers all adapters have, which merging adds to the weights."""
    return sum(weight.numel() for name, weight in model.named_parameters() if _is_own(name))


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return A as `WEIGHT.a` and scale * B as `WEIGHT.b`, for each adapted weight's name.

    None where new rows of the vocabulary were trained as well: nothing fits the model that they were added to.
    """
    adapters = [(name, module) for name, module in model.named_modules() if isinstance(module, Adapted)]
    tensors = {}
    for name, module in adapters:
        if not isinstance(module, LoraLinear):
            return {}
        tensors[f"{name}.weight.a"] = module.lora_a.detach()
        # With the scale in it: who adds B A to the weight need not know alpha.
        tensors[f"{name}.weight.b"] = module.lora_b.detach() * module.scale
    return tensors


def _is_own(name: str) -> bool:
    """Return whether a parameter is an adapter's own, by its name."""
    return name.rpartition(".")[2].startswith(_PREFIX)
