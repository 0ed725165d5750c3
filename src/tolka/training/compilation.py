"""torch.compile for a model's layers, tried out before it is relied on."""

import time

import torch

from tolka.data.batch import Batch
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.training.step import TrainStep


def compile_layers(model: Seq2Seq, device: torch.device, mode: str) -> None:
    """Compile each layer of a model, which happens at the first batch. mode: that of torch.compile.

    ConfigError if torch.compile does not work on this machine.
    """
    # A function of one line finds a missing compiler in seconds; the model's layers would only fail at the first batch.
    try:
        torch.compile(lambda x: (x * 2).relu().sum(), dynamic=True)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"trainer.compile={mode}: torch.compile does not work on this machine ({type(error).__name__}: {reason}); "
            "leave it out"
        ) from None
    model.compile_layers(mode)


def compile_now(step: TrainStep, batch: Batch) -> float:
    """Compile forward and backward passes now; return the seconds by which the first of two took longer."""
    # The first pass compiles, the second only computes.
    seconds = []
    for _ in range(2):
        started_at = time.perf_counter()
        step.rehearse(batch)
        # Kernels are only queued: without this, the time would be that of queueing them.
        if step.precision.device.type == "cuda":
            torch.cuda.synchronize(step.precision.device)
        seconds.append(time.perf_counter() - started_at)
    return max(0.0, seconds[0] - seconds[1])
