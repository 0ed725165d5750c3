"""Data parallel training with torch's DistributedDataParallel: gradients are summed while others are still computed."""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from tolka.data.batch import Batch
from tolka.distributed.ranks import Ranks
from tolka.errors import LostProcessError
from tolka.losses.cross_entropy import LossSum
from tolka.losses.objective import Objective
from tolka.system.device import device_memory
from tolka.training.parallel.base import Parallel


class Overlapped(Parallel):
    """All passes of an update but the last accumulate gradients; in the last, DDP sums them bucket by bucket.

    A rank that runs out of memory in that pass could not begin it again, as the others wait for its sums. So the
    gradients are summed afterwards until batches of this size have fitted on all ranks.
    """

    def __init__(self, objective: Objective, ranks: Ranks) -> None:
        super().__init__(objective, ranks)
        # With unused parameters allowed, DDP keeps its buckets; without, it forms others after the first update, and a
        # resumed run, whose first update is another one, would round its sums differently.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # another name for broadcast_buffers, in newer torch alone
            self._module = DistributedDataParallel(
                objective,
                find_unused_parameters=True,
                gradient_as_bucket_view=True,
                broadcast_buffers=False,  # tables of positions, which grow on each rank by its own sentences
            )
        self._fitted = 0  # positions of the largest part that has fitted into the memory of every rank
        self._largest = 0
        self._overlaps = False

    def begin(self, tokens: int, largest: int) -> float:
        """As in Parallel: DDP sums what it has divided by the number of ranks."""
        self._largest, self._overlaps = largest, largest <= self._fitted
        return tokens / self.ranks.size if self._overlaps else tokens

    def loss(self, batch: Batch, is_last: bool) -> LossSum:
        """As in Parallel; the pass through DDP's module begins the sums."""
        module = self._module if is_last and self._overlaps else self.objective
        sums: LossSum = module(batch)
        return sums

    def check_halves(self, batch: Batch) -> None:
        """Raise LostProcessError where other ranks wait for the sums of this pass."""
        if self._overlaps:
            raise LostProcessError(
                f"process {self.ranks.rank} is out of memory with a batch of {batch.positions} positions, although "
                f"{self._fitted} have fitted: lower batching.tokens, with run.override=true to go on from last/"
            )

    def finish(self, nll: Tensor, split: bool) -> Tensor:
        """As in Parallel, where DDP has not summed the gradients."""
        if self._overlaps:
            nll = nll.clone()
            self.ranks.sum([nll])
            return nll
        if not self.ranks.most(split)[0]:
            self._fitted = self._largest
        return super().finish(nll, split)

    @property
    def _device(self) -> torch.device:
        return next(self.objective.parameters()).device

    def facts(self) -> dict[str, Any]:
        """Return which batches have fitted, and into how much memory."""
        return {"fitted": self._fitted, "memory": device_memory(self._device)}

    def load_facts(self, facts: Mapping[str, Any]) -> None:
        """Restore what `facts` returned."""
        others = self.ranks.most(facts.get("memory") != device_memory(self._device))[0]
        self._fitted = 0 if others else facts.get("fitted", 0)
