"""Seeds and the states of the random number generators."""

import os
import random
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # NumPy takes no larger ones
    torch.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """Return the states of Python's and NumPy's generators as JSON values; torch's are saved as tensors."""
    # JSON, since a state that is loaded must not be a pickle, which can run any code.
    version, numbers, gauss = random.getstate()
    name, key, *rest = np.random.get_state(legacy=True)
    return {"python": [version, list(numbers), gauss], "numpy": [name, [int(number) for number in key], *rest]}


def preserve_torch_random(device: torch.device) -> AbstractContextManager[None]:
    """Restore torch's random number generators after a block."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restore what `random_state` returned."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    np.random.set_state((name, np.array(key, dtype=np.uint32), *rest))


def make_deterministic() -> None:
    """Let torch use deterministic kernels only, slower on a GPU; an operation that has none raises an error."""
    # On a CPU the same number of threads gives the same result anyway.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False  # which would choose kernels by their time in this process
