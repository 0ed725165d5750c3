"""The device that a command computes on, its number format and its CPU threads."""

import os
import platform
import sys
import warnings
from dataclasses import dataclass

import torch

from tolka.errors import ConfigError
from tolka.system.number_format import count_text

PRECISIONS = ("auto", "fp32", "bf16", "fp16")


def choose_device(name: str, key: str = "trainer.device") -> torch.device:
    """Return the device: `auto` is the first CUDA device, else the CPU; also `cpu`, `cuda`, `cuda:N`.

    key: the setting that `name` came from, for the ConfigError. Also sets torch up for GPUs.
    """
    # Blocks of memory that grow serve batches of all shapes. Read when the first one is allocated.
    if sys.platform == "linux" and "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    # Products in fp32 by tensor cores, with 10 bits of mantissa.
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
    # cuDNN's attention makes a plan for every new shape, and batches of text have many.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # torch's own, of a backward pass that begins with a product, and harmless.
    warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context")
    # Ours are made for each batch: cuDNN copies them together.
    warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"{key} ({name}) is not a device; allowed: auto, cpu, cuda, cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"{key} is {name}, but this machine shows {torch.cuda.device_count()} CUDA devices; try auto")
    return device


def use_threads(count: int) -> None:
    """Let torch compute with `count` CPU threads; 0 keeps its own choice."""
    if count:
        torch.set_num_threads(count)


def has_fast_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies bf16 matrices in hardware (CUDA: natively; CPU: AMX or AVX512-BF16)."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Other CPUs emulate bf16. torch has no public function that tells.
    return bool(torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported())


def half_precision(device: torch.device) -> str:
    """Return the number format that a GPU computes fastest in: bf16, or fp16 on cards without it."""
    return "bf16" if has_fast_bf16(device) else "fp16"


@dataclass(frozen=True)
class Precision:
    """Number format of training: fp32, or autocast in bf16 or fp16 with weights in fp32 (Micikevicius et al. 2018)."""

    device: torch.device
    name: str

    def autocast(self) -> torch.autocast:
        """Return autocast for a forward pass; does nothing in fp32."""
        return torch.autocast(self.device.type, dtype=self.dtype, enabled=self.name != "fp32")

    @property
    def dtype(self) -> torch.dtype:
        """That of half precision: bf16, but for fp16."""
        return torch.float16 if self.name == "fp16" else torch.bfloat16

    @property
    def needs_scaler(self) -> bool:
        """Whether the loss must be scaled: fp16's smallest gradients underflow, bf16 has fp32's range."""
        return self.name == "fp16"


def device_memory(device: torch.device) -> int:
    """Return the bytes of memory of a GPU; 0 for a CPU, which shares the machine's."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 0


def describe(device: torch.device) -> str:
    """Return a phrase for logs and model cards: the device, and the threads of a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = count_text(torch.get_num_threads(), "thread")
    return f"{platform.machine()} CPU ({torch.backends.cpu.get_cpu_capability()}), {threads}"
