"""How much memory training will take at its peak, found out before it takes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.losses import Objective
from tolka.runtime import Precision, available_memory_bytes, resident_memory_bytes, torch_random_kept
from tolka.training.step import TrainStep

_MOMENTS = 2  # tensors of a weight's size that an optimiser keeps at most
_PASSING = 1.2  # what the backward pass holds beside what was saved for it: 1.1 to 1.2 measured
_TRIED = 16  # a part of the batch, and one twice as large, tell how memory grows with the sentences


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes: about so many at the peak, and so many there are, 0 where unknown."""

    needed: int
    available: int

    @property
    def fits(self) -> bool:
        """As far as can be told."""
        return not self.available or self.needed <= self.available

    def in_words(self) -> str:
        """For the log."""
        there = f", {self.available / 1e9:.1f} GB are there" if self.available else ""
        return f"about {self.needed / 1e9:.1f} GB at the peak{there}"


def look_at_memory(step: TrainStep, batch: Batch) -> Iterator[str]:
    """Before it is too late, in lines for people. batch: the largest.

    On a GPU it is tried, and halved where it does not fit; on a CPU, where to try may end the process, estimated.
    """
    device = step.precision.device
    if device.type == "cuda":
        splits = step.rehearse(batch)
        halved = f"; batches that are too large for it go in parts (halved {splits} times)" if splits else ""
        yield f"memory: {torch.cuda.max_memory_allocated(device) / 1e9:.1f} GB with the largest batch{halved}"
        return
    need = memory_need(step, batch)
    yield f"memory: {need.in_words()}"
    if not need.fits:
        yield "warning: that will hardly do: lower batching.tokens, or take a smaller model"


def memory_need(step: TrainStep, batch: Batch) -> MemoryNeed:
    """Of training on a CPU with batches like this one, the largest: nothing of its size is computed to find out.

    What the forward pass keeps for the backward pass, by what it keeps of a sixteenth and of an eighth of the batch;
    weights, gradients, the optimiser's moments, and the copies that a checkpoint is written from.
    """
    model = step.objective.model
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    trained = sum(weight.numel() * weight.element_size() for weight in model.parameters() if weight.requires_grad)
    state = _MOMENTS * trained + (weights if step.ema else 0)
    rows = len(batch.source)
    few = max(1, rows // _TRIED)
    small, large = (saved_bytes(step.objective, batch.first(n), step.precision) for n in (few, 2 * few))
    activations = _PASSING * (small + (rows - few) / few * (large - small))
    resident, available = resident_memory_bytes(), available_memory_bytes()
    needed = resident + trained + state + (weights + state) + int(activations)
    return MemoryNeed(needed, available + resident if available else 0)


def saved_bytes(objective: Objective, batch: Batch, precision: Precision) -> int:
    """What a forward pass keeps for its backward pass, in bytes, the weights left out; leaves no trace."""
    own = {weight.untyped_storage().data_ptr() for weight in objective.parameters()}
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    def unpack(tensor: Any) -> Any:
        return tensor

    with torch_random_kept(precision.device), torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        with precision.autocast():
            sums = objective(batch.to(precision.device))
        del sums
    return sum(found.values())
