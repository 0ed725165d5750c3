"""Seeds and the states of the random number generators."""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """Return the states of Python's and NumPy's generators as JSON values; torch's are saved as tensors."""
    version, numbers, gauss = random.getstate()
    name, key, *rest = np.random.get_state(legacy=True)
    return {"python": [version, list(numbers), gauss], "numpy": [name, [int(number) for number in key], *rest]}


@contextmanager
def torch_random_kept(device: torch.device) -> Iterator[None]:
    """Restore torch's random number generators after a block."""
    before, before_cuda = torch.get_rng_state(), None
    if device.type == "cuda":
        before_cuda = torch.cuda.get_rng_state(device)
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if before_cuda is not None:
            torch.cuda.set_rng_state(before_cuda, device)


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restore what `random_state` returned."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    np.random.set_state((name, np.array(key, dtype=np.uint32), *rest))


def make_deterministic() -> None:
    """Let torch use deterministic kernels only; an operation that has none raises an error.

    Slower on a GPU. On a CPU the same number of threads gives the same result anyway.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
