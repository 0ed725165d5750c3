"""CUDA graphs: many kernels that are started at once.

A small model's step is hundreds of kernels of a few microseconds each, which Python starts more slowly than a GPU runs
them. Captured once for each shape, they are replayed with other numbers (Nguyen et al. 2021, PyTorch's blog).
"""

from collections.abc import Callable
from dataclasses import dataclass

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


class GraphPool:
    """Memory for graphs that are never replayed at the same time; nothing of it unless the device is a CUDA device.

    They share a stream too, without which none gets memory that another has done with, and end together, as the end of
    one takes the workspace of all that were captured on its stream.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.graphs: list[torch.cuda.CUDAGraph] = []
        if device.type == "cuda":
            self.handle = torch.cuda.graph_pool_handle()
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def record(run: Callable[[], Tensor], pool: GraphPool) -> Recording:
    """Capture a function of tensors that stay where they are, after a few runs of it. RuntimeError if it cannot."""
    device = pool.device
    if device.type != "cuda":
        raise RuntimeError(f"no CUDA graphs on {device}")
    stream = pool.stream
    current = torch.cuda.current_stream(device)
    stream.wait_stream(current)
    graph = torch.cuda.CUDAGraph()
    pool.graphs.append(graph)
    # The last of these leads back to the current stream, also when a capture fails.
    with torch.cuda.device(device), torch.cuda.stream(current):
        with torch_random_kept(device), torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                run()
        current.wait_stream(stream)
        # Another thread may be copying the model to save it.
        with torch.cuda.graph(graph, pool=pool.handle, stream=stream, capture_error_mode="thread_local"):
            result = run()
    return Recording(graph.replay, result)


def recorded(run: Callable[[], Tensor], pool: GraphPool, key: str, what: str) -> Recording:
    """As `record`; TolkaError where it cannot be captured, memory's own error where that is full.

    key: the setting that asks for it. what: is captured.
    """
    try:
        return record(run, pool)
    except RuntimeError as error:
        first = _first(error)
        try:
            if is_out_of_memory(first):  # the batch is halved
                raise first from None
            reason = str(first).partition("\n")[0]
            raise TolkaError(f"{key}=true: {what} cannot be captured ({reason}); leave it out") from None
        finally:
            del first  # whose traceback has this frame: neither would be freed at once


def _first(error: BaseException) -> BaseException:
    """What went wrong; the end of the capture that it broke off raises another error."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def power_of_two(size: int) -> int:
    """The next, or itself: of a size that few graphs are to serve."""
    return 1 << (size - 1).bit_length()
