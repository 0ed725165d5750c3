"""The peak memory of training, estimated or tried out before it is needed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import Batch
from tolka.data.loader import Batches
from tolka.errors import ConfigError
from tolka.losses.objective import Objective
from tolka.models.base import ModelConfig
from tolka.nn.initialization import SkipInitialization
from tolka.system.device import Precision
from tolka.system.memory import available_memory_bytes, resident_memory_bytes, total_memory_bytes
from tolka.system.randomness import torch_random_kept
from tolka.training.step import MOMENTS, TrainStep

_BYTES = 4  # of a weight in fp32
# Fitted to the peaks of nine trainings (docs/reliability.md), which it meets within 10 %.
_PASSING = 1.3  # what the backward pass holds beside what was saved for it, and blocks of freed memory between others
_COPIES = 3  # of the weights: the best model so far, the one that validates, what matmuls make of it
_LIBRARIES = 70e6  # bytes that the first update and the first validation bring: kernels, the metrics, threads
_TRIED = 16  # a part of the batch, and one twice as large, tell how memory grows with the sentences ...
_MOST_TRIED = 2048  # ... but no more padded positions than these, however large the batch


@dataclass(frozen=True)
class Fit:
    """How an update is divided: a number of batches of so many tokens."""

    batches: int
    tokens: int

    @classmethod
    def of(cls, tokens: int, batches: int) -> "Fit":
        """Divide an update's tokens among batches."""
        return cls(batches, -(-tokens // batches))


def fewest_batches(step: TrainStep, loader: Batches, tokens: int, least: int) -> Fit:
    """Divide an update's tokens among as few batches as fit into memory. least: tokens that a batch must hold.

    Tried on a GPU, estimated on a CPU, as in `check_memory`. Leaves the loader with batches of that size.
    """
    most = max(1, tokens // least)
    numbers = [1, *sorted(few << shift for shift in range(most.bit_length()) for few in (2, 3))]  # 1, 2, 3, 4, 6, 8 ...
    for batches in [*(number for number in numbers if number < most), most]:
        fit = Fit.of(tokens, batches)
        loader.resize(fit.tokens)
        if batches == most or _fits_in_memory(step, loader.largest()):
            break
    return fit


def _fits_in_memory(step: TrainStep, batch: Batch) -> bool:
    if step.precision.device.type != "cuda":
        return memory_need(step, batch).fits
    with step.memory_filled():
        return step.fits_in_memory(batch)


@dataclass(frozen=True)
class MemoryNeed:
    """Estimated peak, and available memory, in bytes; 0 where unknown."""

    needed: int
    available: int

    @property
    def fits(self) -> bool:
        """Return whether the need fits, as far as that is known."""
        return not self.available or self.needed <= self.available

    def in_words(self) -> str:
        """Return a line for the log."""
        there = f", of {self.available / 1e9:.1f} GB that are free" if self.available else ""
        digits = 1 if self.needed >= 1e9 else 2
        return f"training will take about {self.needed / 1e9:.{digits}f} GB{there} (estimated)"


def check_size(config: ModelConfig, vocabularies: tuple[int, int], shared: bool, device: torch.device) -> None:
    """Raise ConfigError, before anything is built, for a model whose weights alone exceed the device's memory."""
    with torch.device("meta"), SkipInitialization():  # shapes, and no numbers
        count = config.build(*vocabularies, shared).parameter_count()
    needed = _BYTES * count
    cuda = device.type == "cuda"
    there = torch.cuda.get_device_properties(device).total_memory if cuda else total_memory_bytes()
    if there and needed > there:
        raise ConfigError(
            f"the model has {count:,} parameters, {needed / 1e9:.1f} GB of weights alone, and {device} has "
            f"{there / 1e9:.1f} GB of memory: lower model.d_model or model.layers, or set model.parameters"
        )


def check_memory(step: TrainStep, batch: Batch, decode: Callable[[], object]) -> Iterator[str]:
    """Check the memory before training starts; yield lines for the log. batch: the largest.

    decode: translates what takes most memory. On a GPU both are tried, and halved where they do not fit. On a CPU,
    where a try may end the process, training's need is estimated.
    """
    device = step.precision.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        with step.memory_filled():
            splits = step.rehearse(batch)
            decode()
        halved = f"; batches that are too large for it go in parts (halved {splits} times)" if splits else ""
        yield f"memory: {torch.cuda.max_memory_allocated(device) / 1e9:.1f} GB with the largest batches{halved}"
        return
    need = memory_need(step, batch)
    yield f"memory: {need.in_words()}"
    if not need.fits:
        yield "warning: training may run out of memory: lower batching.tokens, or take a smaller model"


def memory_need(step: TrainStep, batch: Batch) -> MemoryNeed:
    """Estimate the need of training on a CPU with batches like this one, the largest, without computing on it.

    Activations are extrapolated from a sixteenth and an eighth of the batch, or less of a very large one. Weights,
    gradients, the optimizer's moments, and the copies that a checkpoint is written from are added.
    """
    model = step.objective.model
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    trained = sum(weight.numel() * weight.element_size() for weight in model.parameters() if weight.requires_grad)
    state = MOMENTS * trained + (weights if step.ema else 0)
    rows = len(batch.source)
    few = max(1, min(rows // _TRIED, _MOST_TRIED * rows // batch.positions))
    small, large = (saved_bytes(step.objective, batch.first(n), step.precision) for n in (few, 2 * few))
    activations = _PASSING * (small + (rows - few) / few * (large - small))
    resident, available = resident_memory_bytes(), available_memory_bytes()
    needed = resident + trained + state + (weights + state) + _COPIES * weights + int(activations + _LIBRARIES)
    return MemoryNeed(needed, available + resident if available else 0)


def saved_bytes(objective: Objective, batch: Batch, precision: Precision) -> int:
    """Return the bytes that a forward pass saves for its backward pass, without the weights; has no side effects."""
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
