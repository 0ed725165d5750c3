"""The processes that train one model together, as torch.distributed connects them.

torchrun starts them and describes them to each other in RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.
"""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from tolka.errors import LostProcessError, TolkaError
from tolka.system.launch import launch, restarts

TIMEOUT = timedelta(minutes=30)
"""How long processes wait for the others at the start, and each time that something is summed; as in torch."""
_TRAININGS = itertools.count()  # of this process; torchrun's store still has the addresses of earlier ones


@dataclass(frozen=True)
class Ranks:
    """One of `size` processes; `rank` counts from 0. The first one writes files and reports.

    Every method that sums or gathers has to be called by all of them, in the same order.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over all ranks, the same on every rank, bit for bit."""
        # A copy, because all_reduce writes into its argument.
        total = tensor.clone()
        if self.size > 1:
            with others_present():
                dist.all_reduce(total)
        return total

    def most(self, *values: float) -> list[float]:
        """Return the largest of all ranks' values, place by place."""
        if self.size == 1:
            return list(values)
        largest = torch.tensor(values, dtype=torch.float64)
        with others_present():
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        return largest.tolist()

    def gather(self, value: Any) -> list[Any]:
        """Return the value of every rank, in order; it is pickled on the way between them."""
        if self.size == 1:
            return [value]
        gathered: list[Any] = [None] * self.size
        with others_present():
            dist.all_gather_object(gathered, value)
        return gathered

    def outcomes(self, job: Callable[[], Any]) -> list[Any]:
        """Run a job on every rank; return all results, in the order of the ranks.

        A TolkaError of any rank is raised on all of them, so that none waits for one that has ended.
        """
        try:
            outcome = job()
        except TolkaError as error:
            outcome = error
        gathered = self.gather(outcome)
        for each in gathered:
            if isinstance(each, TolkaError):
                raise each
        return gathered

    def of_first(self, value: Any) -> Any:
        """Return the first rank's value on every rank."""
        return self.gather(value)[0]

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.gather(None)

    def share(self, items: Sequence[Any]) -> list[Any]:
        """Return this rank's share: every n-th item, n being the number of ranks. `collect` undoes it."""
        return list(items[self.rank :: self.size])

    def collect(self, own: Sequence[Any]) -> list[Any]:
        """Return the results of all ranks' shares, in the order of the items that `share` dealt out."""
        parts = self.gather(list(own))
        return [parts[i % self.size][i // self.size] for i in range(sum(map(len, parts)))]


ALONE = Ranks()
"""A training in one process."""


@contextmanager
def process_group() -> Iterator[Ranks]:
    """Join the other processes for the length of a block, if torchrun or Slurm says that there are some; else ALONE.

    An error in the block is reported by the process that has it first; for the others it is marked as reported.
    """
    place = launch()
    if place.size == 1 or dist.is_initialized():
        yield Ranks(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else ALONE
        return
    backend = "gloo"
    if torch.cuda.is_available():
        # Slurm may show each process its own GPU alone, as number 0.
        torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
        # Decisions are taken on the CPU, without waiting for the GPU. NCCL connects when it is used: with `device_id`
        # it would now, also for a training on the CPU, and before two processes on one GPU are told so.
        backend = "cpu:gloo,cuda:nccl"
    try:
        # torchrun's store outlives restarts and earlier trainings: each has names of its own in it, or a rank would
        # read where the dead ones listened.
        shared = next(iter(rendezvous("env://", timeout=TIMEOUT)))[0]
        store = PrefixStore(f"restart {restarts()}, training {next(_TRAININGS)}", shared)
        dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.size, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} (MASTER_ADDR, MASTER_PORT)"
        raise TolkaError(
            f"process {place.rank} has not met all {place.size} processes of this training at {where} within "
            f"{TIMEOUT.total_seconds() / 60:g} minutes: start all of them, at a free port, or one "
            f"with WORLD_SIZE=1 ({' '.join(str(error).split())[:120]})"
        ) from None
    try:
        yield Ranks(place.rank, place.size)
    except TolkaError as error:
        # `add` counts for all ranks: the first to have an error reports it.
        try:
            error.reported = error.reported or store.add("errors", 1) > 1
        # The store was in the first process, which has ended and has reported why.
        except RuntimeError:
            error.reported = not isinstance(error, LostProcessError)
        raise
    finally:
        dist.destroy_process_group()


@contextmanager
def others_present() -> Iterator[None]:
    """Raise LostProcessError where another rank has ended, or does not answer."""
    try:
        yield
    except RuntimeError as error:
        # Without the place in gloo's code. Gloo raises a plain RuntimeError, which only its words tell from others.
        words = re.sub(r"\[\S+\.cc:\d+\] ", "", " ".join(str(error).split()))
        if "peer" not in words and "imed out" not in words and not isinstance(error, dist.DistError):
            raise
        raise LostProcessError(
            f"another process of this training has ended, or does not answer ({words[:120]}); the same command "
            "continues from last/"
        ) from None
