"""Data parallel training with torch's DistributedDataParallel: gradients are summed while others are still computed."""

import warnings

from torch.nn.parallel import DistributedDataParallel

from tolka.data.batch import Batch
from tolka.distributed.ranks import Ranks
from tolka.errors import LostProcessError
from tolka.losses.cross_entropy import LossSum, Objective
from tolka.training.parallel.base import Parallel


class Overlapped(Parallel):
    """All passes of an update but the last accumulate gradients; in the last, DDP sums them bucket by bucket."""

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

    def begin(self, tokens: int) -> float:
        # DDP divides what it has summed by the number of ranks, which this undoes.
        return tokens / self.ranks.size

    def loss(self, batch: Batch, is_last: bool) -> LossSum:
        # The pass through DDP's module begins the sums: once for each update, not for each of its batches.
        module = self._module if is_last else self.objective
        return module(batch)

    def check_halves(self, batch: Batch, is_last: bool) -> None:
        """Raise LostProcessError where other ranks wait for the sums of this pass."""
        # It cannot begin again. Rare, as the largest batch is tried before training, and goes in halves from then on.
        if is_last:
            raise LostProcessError(
                f"process {self.ranks.rank} is out of memory with a batch of {batch.positions} positions: lower "
                "batching.tokens, with run.override=true to continue from last/"
            )
