"""File names in a model directory, except the manifest's and the tokenizer's."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

CONFIG, WEIGHTS, SCORES, CARD = "config.yaml", "model.safetensors", "scores.json", "README.md"
ADAPTER, BASE = "adapter.safetensors", "base"
STATE_TENSORS, STATE_FACTS = "state/tensors.safetensors", "state/state.json"


@dataclass(frozen=True)
class ResumeState:
    """What training needs to resume besides the weights: named tensors, and values for JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def unique_tensors(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return each shared tensor once, under the first of its names, without copying."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in tensors.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            unique[name] = tensor.detach()
    return unique
