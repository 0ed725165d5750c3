"""The peak memory of training, estimated or measured before training starts."""

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
from tolka.system.device import Precision, device_memory
from tolka.system.memory import available_memory_bytes, resident_memory_bytes, total_memory_bytes
from tolka.system.randomness import torch_random_kept
from tolka.training.optimizer_state import MOMENTS
from tolka.training.step import TrainStep

_BYTES = 4  # per weight in fp32
# Fitted to the peaks of nine trainings (docs/reliability.md), all of which the estimate meets within 10 %.
_PASSING = 1.3  # factor on saved activations, for what else the backward pass holds and for fragmentation
_COPIES = 3  # of the weights: the best model so far, the one that validates, the layouts that matmuls need
_LIBRARIES = 70e6  # bytes that the first update and the first validation allocate: kernels, metrics, threads
_SAMPLE_SHARE = 16  # a sixteenth of the batch, and twice as much, show how memory grows with the sentences ...
_MAX_SAMPLE_POSITIONS = 2048  # ... but at most these padded positions, however large the batch


@dataclass(frozen=True)
class Fit:
    """The division of an update into a number of batches of at most `tokens` each."""

    batches: int
    tokens: int

    @classmethod
    def of(cls, tokens: int, batches: int) -> "Fit":
        """Divide an update's tokens among `batches`."""
        return cls(batches, -(-tokens // batches))


def fewest_batches(step: TrainStep, loader: Batches, tokens: int, least: int) -> Fit:
    """Divide an update's tokens among as few batches as fit into memory. least: tokens that a batch must hold.

    Measured on a GPU, estimated on a CPU, as in `check_memory`. Leaves the loader with batches of that size.
    """
    most = max(1, tokens // least)
    counts = [1, *sorted(few << shift for shift in range(most.bit_length()) for few in (2, 3))]  # 1, 2, 3, 4, 6, 8 ...
    for batches in [*(count for count in counts if count < most), most]:
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
    """The estimated peak and the available memory, in bytes; 0 where unknown."""

    needed: int
    available: int

    @property
    def fits(self) -> bool:
        """Whether the need fits, as far as that is known."""
        return not self.available or self.needed <= self.available

    def in_words(self) -> str:
        """Return a line for the log."""
        free = f", of {self.available / 1e9:.1f} GB that are free" if self.available else ""
        digits = 1 if self.needed >= 1e9 else 2
        return f"training will take about {self.needed / 1e9:.{digits}f} GB{free} (estimated)"


def check_size(config: ModelConfig, vocabularies: tuple[int, int], shared: bool, device: torch.device) -> None:
    """Raise ConfigError, before anything is built, for a model whose weights alone exceed the device's memory."""
    with torch.device("meta"), SkipInitialization():  # shapes without memory
        count = config.build(*vocabularies, shared).parameter_count()
    needed = _BYTES * count
    memory = device_memory(device) or total_memory_bytes()
    if memory and needed > memory:
        raise ConfigError(
            f"the model has {count:,} parameters, {needed / 1e9:.1f} GB of weights alone, and {device} has "
            f"{memory / 1e9:.1f} GB of memory: lower model.d_model or model.layers, or set model.parameters"
        )


def check_memory(step: TrainStep, batch: Batch, decode: Callable[[], object]) -> Iterator[str]:
    """Check the memory before training starts; yield lines for the log. batch: the largest.

    decode: translates the batch that takes most memory. On a GPU both are run, and halved where they do not fit. On a
    CPU, where running out of memory may end the process, the need of training is estimated.
    """
    device = step.precision.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        with step.memory_filled():
            splits = step.rehearse(batch.first(-(-len(batch.source) // step.parallel.ranks.size)))
            with step.smoothed():
                decode()
        halved = f"; batches that are too large for it go in parts (halved {splits} times)" if splits else ""
        yield f"memory: {torch.cuda.max_memory_allocated(device) / 1e9:.1f} GB with the largest batches{halved}"
        return
    if step.shares_weights:  # the estimate knows only whole ones
        return
    need = memory_need(step, batch)
    yield f"memory: {need.in_words()}"
    if not need.fits:
        yield "warning: training may run out of memory: lower batching.tokens, or take a smaller model"


def memory_need(step: TrainStep, batch: Batch) -> MemoryNeed:
    """Estimate the memory that training on a CPU needs, without computing on `batch`, the largest.

    Activations are extrapolated from a sixteenth and an eighth of the batch, or less of a very large one. Weights,
    gradients, the optimizer's moments, and the copies that a checkpoint is written from are added.
    """
    model = step.objective.model
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    trained = sum(weight.numel() * weight.element_size() for weight in model.parameters() if weight.requires_grad)
    state = MOMENTS * trained + (weights if step.ema else 0)
    rows = len(batch.source)
    sample = max(1, min(rows // _SAMPLE_SHARE, _MAX_SAMPLE_POSITIONS * rows // batch.positions))
    small, large = (saved_bytes(step.objective, batch.first(n), step.precision) for n in (sample, 2 * sample))
    activations = _PASSING * (small + (rows - sample) / sample * (large - small))
    resident, available = resident_memory_bytes(), available_memory_bytes()
    needed = resident + trained + state + (weights + state) + _COPIES * weights + int(activations + _LIBRARIES)
    return MemoryNeed(needed, available + resident if available else 0)


def saved_bytes(objective: Objective, batch: Batch, precision: Precision) -> int:
    """Return the bytes that a forward pass saves for its backward pass, without the weights; has no side effects."""
    weights = {weight.untyped_storage().data_ptr() for weight in objective.parameters()}
    sizes: dict[int, int] = {}  # address of a storage -> bytes

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    def unpack(tensor: Any) -> Any:
        return tensor

    with torch_random_kept(precision.device), torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        with precision.autocast():
            sums = objective(batch.to(precision.device))
        del sums
    return sum(sizes.values())
