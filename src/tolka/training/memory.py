"""The memory of training, tried on a GPU before training starts."""

from collections.abc import Callable, Iterator

import torch

from tolka.data.batch import Batch
from tolka.data.loader import Batches
from tolka.errors import ConfigError
from tolka.models.base import ModelConfig
from tolka.system.device import device_memory
from tolka.system.memory import total_memory_bytes
from tolka.training.step import TrainStep

_BYTES = 4  # per weight in fp32


def fewest_batches(step: TrainStep, loader: Batches, tokens: int, least: int) -> int:
    """Return into how few batches an update's tokens are divided to fit a GPU's memory; on a CPU, trainer.accumulate.

    least: tokens that a batch must hold. Changes the size of the loader's batches.
    """
    if not _can_try(step):
        return step.config.accumulate
    most = max(1, tokens // least)
    # 1, 2, 3, 4, 6, 8, 12 ...: few tries, each of them a pass over a batch, and at most half more batches than needed.
    counts = [1, *sorted(few << shift for shift in range(most.bit_length()) for few in (2, 3))]
    for batches in [*(count for count in counts if count < most), most]:
        loader.resize(-(-tokens // batches))
        with step.memory_filled():
            if batches == most or step.fits_in_memory(_share(step, loader.largest())):
                break
    return batches


def _share(step: TrainStep, batch: Batch) -> Batch:
    """Return the part of a batch that a rank trains on: as many of the pairs as any other, or one fewer."""
    return batch.part(slice(-(-len(batch.source) // step.parallel.ranks.size)))


def _can_try(step: TrainStep) -> bool:
    """Return whether too large a batch is an error: on a CPU it may end the process."""
    return step.precision.device.type == "cuda"


def check_size(
    config: ModelConfig, sizes: tuple[int, int, bool], device: torch.device, copies: int = 1, most: float = 0.0
) -> None:
    """Raise ConfigError, before anything is built, for a model that cannot be trained in the device's memory.

    sizes: as for `ModelConfig.build`. copies: of the weights that training holds at least, see `copies_of_weights`.
    most: bytes that it may take; 0 = all that there are.
    """
    count = config.shapes(*sizes).parameter_count()
    memory, weights = most or device_memory(device) or total_memory_bytes(), _BYTES * count
    if not memory or copies * weights <= memory:
        return
    there = f"{'trainer.memory allows' if most else f'{device} has'} {memory / 1e9:.1f} GB"
    what = f"weights alone, and {there}: lower model.d_model or model.layers"
    if weights <= memory:
        weights *= copies
        what = (
            f"weights, gradients and what the optimizer keeps, and {there}: "
            "optimizer=adafactor keeps nothing; of a model to start from, finetuning.lora_rank=8 has hardly more than "
            "weights, and mt-train import MODEL -o OUT 'languages=[CODE,CODE]' leaves out subwords of many languages; "
            "several processes share all out (trainer.parallel=fsdp); or lower model.d_model or model.layers"
        )
    raise ConfigError(f"the model has {count:,} parameters, {weights / 1e9:.1f} GB of {what}, or set model.parameters")


def copies_of_weights(optimizer: str, trains_all: bool) -> int:
    """Return how many times the size of its weights a training holds at least. trains_all: no part is frozen."""
    # Weights, gradients, and the two moments of Adam (Kingma and Ba 2015).
    return 1 if not trains_all else 4 if optimizer in ("adam", "adamw") else 2


def check_memory(step: TrainStep, batch: Batch, decode: Callable[[], object]) -> Iterator[str]:
    """Run on a GPU what takes most memory before training starts; yield lines for the log. batch: the largest.

    decode: translates the batch that takes most memory. What does not fit is halved.
    """
    if not _can_try(step):
        return
    device = step.precision.device
    torch.cuda.reset_peak_memory_stats(device)
    with step.memory_filled():
        splits = step.rehearse(_share(step, batch))
        with step.smoothed():
            decode()
    halved = f"; batches that are too large for it go in parts (halved {splits} times)" if splits else ""
    yield f"memory: {torch.cuda.max_memory_allocated(device) / 1e9:.1f} GB with the largest batches{halved}"
