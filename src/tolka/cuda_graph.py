"""CUDA graphs: many kernels that are started at once.

A small model's step is hundreds of kernels of a few microseconds each, which Python starts more slowly than a GPU runs
them. Captured once for each shape, they are replayed with other numbers (Nguyen et al. 2021, PyTorch's blog).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tolka.errors import TolkaError
from tolka.runtime import is_out_of_memory, torch_random_kept

WARM_UP = 2  # runs before a capture: libraries set themselves up in the first


@dataclass(frozen=True)
class Recording:
    """What was recorded: how to have it done again, and where its result is then."""

    replay: Callable[[], None]
    result: Tensor


def record(run: Callable[[], Tensor], device: torch.device, pool: Any) -> Recording:
    """Capture a function of tensors that stay where they are; it is run a few times first. RuntimeError if it cannot.

    pool: memory of graphs that are never replayed at the same time.
    """
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    current = torch.cuda.current_stream(device)
    stream.wait_stream(current)
    graph = torch.cuda.CUDAGraph()
    # The last of these leads back to the current stream, also when a capture fails.
    with torch.cuda.device(device), torch.cuda.stream(current):
        with torch_random_kept(device), torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                run()
        current.wait_stream(stream)
        # Another thread may be copying the model to save it.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            result = run()
    return Recording(graph.replay, result)


def recorded(run: Callable[[], Tensor], device: torch.device, pool: Any, key: str, what: str) -> Recording:
    """As `record`; TolkaError where it cannot be captured, memory's own error where that is full.

    key: the setting that asks for it. what: is captured.
    """
    try:
        return record(run, device, pool)
    except RuntimeError as error:
        first = _first(error)
        if is_out_of_memory(first):  # the batch is halved
            raise first from None
        reason = str(first).partition("\n")[0]
        raise TolkaError(f"{key}=true: {what} cannot be captured ({reason}); leave it out") from None


def _first(error: BaseException) -> BaseException:
    """What went wrong; the end of the capture that it broke off raises another error."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def memory_pool(device: torch.device) -> Any:
    """For `record`; None but on a CUDA device."""
    return torch.cuda.graph_pool_handle() if device.type == "cuda" else None


def power_of_two(size: int) -> int:
    """The next, or itself: of a size that few graphs are to serve."""
    return 1 << (size - 1).bit_length()
