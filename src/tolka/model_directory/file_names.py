"""Names of the files in a model directory."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

CONFIG, WEIGHTS, SCORES, CARD = "config.yaml", "model.safetensors", "scores.json", "README.md"
ADAPTER, BASE = "adapter.safetensors", "base"
STATE_TENSORS, STATE_FACTS = "state/tensors.safetensors", "state/state.json"


@dataclass(frozen=True)
class ResumeState:
    """What training needs beside the weights to resume: named tensors, and facts that fit into JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def each_once(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return each storage once, under the first of its names; the tensors share their memory with those given."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in tensors.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            unique[name] = tensor.detach()
    return unique
