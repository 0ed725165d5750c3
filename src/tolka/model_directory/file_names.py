"""File names in a model directory, except the manifest's and the tokenizer's."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:  # torch's distributed checkpoints take a second to import
    from tolka.model_directory.shards import Shards

CONFIG, WEIGHTS, SCORES, CARD = "config.yaml", "model.safetensors", "scores.json", "README.md"
ADAPTER, BASE = "adapter.safetensors", "base"
STATE_TENSORS, STATE_FACTS, STATE_SHARDS = "state/tensors.safetensors", "state/state.json", "state/shards"
SHARDS_IN_PROGRESS = ".shards"  # in a run's folder, while the processes write them


@dataclass(frozen=True)
class ResumeState:
    """What training needs to resume besides the weights: named tensors, and values for JSON.

    shards: more tensors, of which each process has a part, in a folder.
    """

    tensors: dict[str, Tensor]
    facts: dict[str, Any]
    shards: "Shards | None" = None


def unique_tensors(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return each shared tensor once, under the first of its names, without copying."""
    seen: set[int] = set()
    unique = {}
    for name, tensor in tensors.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            unique[name] = tensor.detach()
    return unique
