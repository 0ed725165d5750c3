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
    """Where Python's and NumPy's generators stand, in values that fit into JSON; torch's are tensors of their own."""
    version, numbers, gauss = random.getstate()
    name, key, *rest = np.random.get_state(legacy=True)
    return {"python": [version, list(numbers), gauss], "numpy": [name, [int(number) for number in key], *rest]}


@contextmanager
def torch_random_kept(device: torch.device) -> Iterator[None]:
    """Whatever a block draws, torch's generators go on as if it had not been."""
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
    """Go on from what `random_state` gave."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, key, *rest = state["numpy"]
    np.random.set_state((name, np.array(key, dtype=np.uint32), *rest))


def make_deterministic() -> None:
    """Have torch take no kernel whose result may differ from run to run; an operation that has none other fails.

    Slower on a GPU. On a CPU the same number of threads gives the same result anyway.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
