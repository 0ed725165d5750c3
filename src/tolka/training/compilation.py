"""torch.compile for a model's layers, tried before it is relied on."""

import time

import torch

from tolka.batch import Batch
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.training.step import TrainStep


def compile_layers(model: Seq2Seq, device: torch.device) -> None:
    """What each layer does becomes a program of its own, made when the first batch comes.

    ConfigError where this machine has no compiler for it.
    """
    try:
        torch.compile(_tried, dynamic=True)(torch.ones(8, device=device))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"trainer.compile=true: torch.compile does not work on this machine ({type(error).__name__}: {reason}); "
            "leave it out"
        ) from None
    model.compile_layers()


def _tried(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).relu().sum()


def compile_now(step: TrainStep, batch: Batch) -> float:
    """Seconds that compiling took, forward and backward; nothing else is left of it."""
    seconds = []
    for _ in range(2):
        started_at = time.perf_counter()
        step.rehearse(batch)
        if step.precision.device.type == "cuda":
            torch.cuda.synchronize(step.precision.device)
        seconds.append(time.perf_counter() - started_at)
    return max(0.0, seconds[0] - seconds[1])
