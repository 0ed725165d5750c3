"""The processes that train one model together, as torch.distributed connects them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_BUCKET = 25 * 2**20  # bytes that are summed by one call


@dataclass(frozen=True)
class Ranks:
    """One of `size` processes; `rank` counts from 0. The first one writes and talks.

    Every method that sums or gathers has to be called by all of them, in the same order.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes and talks."""
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks; the result is the same on every rank, bit for bit."""
        if self.size == 1:
            return
        sent = [(bucket, torch.cat([tensor.reshape(-1) for tensor in bucket])) for bucket in _buckets(tensors)]
        for handle in [dist.all_reduce(flat, async_op=True) for _, flat in sent]:
            assert handle is not None
            handle.wait()
        for bucket, flat in sent:
            for tensor, part in zip(bucket, flat.split([tensor.numel() for tensor in bucket]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def gather(self, value: Any) -> list[Any]:
        """Return the value of every rank, in order; it is pickled on the way between them."""
        if self.size == 1:
            return [value]
        gathered: list[Any] = [None] * self.size
        dist.all_gather_object(gathered, value)
        return gathered


ALONE = Ranks()
"""A training in one process."""


def joined() -> Ranks:
    """Return this process's place in torch's default process group; ALONE if there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return ALONE
    return Ranks(dist.get_rank(), dist.get_world_size())


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the tensors in order, in groups of one type and about _BUCKET bytes."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (tensor.dtype != bucket[0].dtype or size + tensor.nbytes > _BUCKET):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket
