"""The number format to train in: as configured, or chosen by a trial."""

import time
from collections.abc import Callable

import torch

from tolka.data.batch import UNK, Batch, collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import Objective
from tolka.system.device import Precision, half_precision, has_fast_bf16
from tolka.system.randomness import preserve_torch_random

# The fastest counts: the first one also allocates memory and compiles kernels.
_TRIAL_ROUNDS = 3
_LACKS_KERNEL = ("could not create a primitive", "not implemented for")


def check_precision(name: str, device: torch.device) -> None:
    """Raise ConfigError if the device cannot train in this number format."""
    if name == "fp16" and device.type == "cpu":
        raise ConfigError("trainer.precision=fp16 needs a CUDA device; on a CPU use auto, fp32 or bf16")


def choose_precision(
    name: str, device: torch.device, objective: Objective, batch: Callable[[], Batch]
) -> tuple[Precision, str]:
    """Return the precision, and a phrase that says why.

    auto: on CUDA bf16 where the GPU has it, else fp16 with a scaler. On a CPU fp32, unless the processor multiplies
    bf16 in hardware and is faster with it in a trial of a few passes over `batch()`.
    """
    if name != "auto":
        return Precision(device, name), "as set"
    if device.type == "cuda":
        chosen = half_precision(device)
        reason = "the GPU has bf16" if chosen == "bf16" else "the GPU has no bf16: with a gradient scaler"
        return Precision(device, chosen), reason
    # Without instructions for it a CPU emulates bf16, which is slower than fp32.
    if not has_fast_bf16(device):
        return Precision(device, "fp32"), "this processor has neither AMX nor AVX512-BF16"
    if reason := _lacking_kernel(Precision(device, "bf16"), objective):
        return Precision(device, "fp32"), f"no bf16: {reason}"
    sample = batch().to(device)
    seconds = {candidate: _trial(Precision(device, candidate), objective, sample) for candidate in ("fp32", "bf16")}
    best = min(seconds, key=lambda candidate: seconds[candidate])
    return Precision(device, best), f"trial: fp32 {seconds['fp32']:.2f} s, bf16 {seconds['bf16']:.2f} s a batch"


def check_kernels(precision: Precision, objective: Objective) -> None:
    """Raise ConfigError where a CPU has no kernels for the model in this precision."""
    if precision.device.type != "cpu" or precision.name == "fp32":
        return
    if reason := _lacking_kernel(precision, objective):
        raise ConfigError(
            f"trainer.precision={precision.name} does not work for this model on this CPU ({reason}): set "
            "trainer.precision=fp32"
        )


def _lacking_kernel(precision: Precision, objective: Objective) -> str:
    """Return torch's message about a kernel that a pass over two short sentences lacks; "" if it lacks none."""
    # oneDNN's LSTM has bf16 only on some processors, and says so in the first pass.
    try:
        _trial(precision, objective, collate([[UNK, UNK], [UNK]], [[UNK], [UNK, UNK]]), rounds=1)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0].partition(". Run workload")[0]
        return reason if any(text in reason for text in _LACKS_KERNEL) else ""  # any other comes again in training
    return ""


def _trial(precision: Precision, objective: Objective, batch: Batch, rounds: int = _TRIAL_ROUNDS) -> float:
    """Return the seconds of the fastest forward and backward pass."""
    # Leaves neither gradients nor used-up random numbers: training does not depend on whether there was a trial.
    seconds = []
    with preserve_torch_random(precision.device):
        for _ in range(rounds):
            started_at = time.perf_counter()
            with precision.autocast():
                loss = objective(batch).loss
            if loss.requires_grad:
                loss.backward()
            seconds.append(time.perf_counter() - started_at)
    objective.zero_grad(set_to_none=True)
    return min(seconds)
