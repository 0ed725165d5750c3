"""How processes train together, as an update sees it; in one process there is nothing to do."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from torch import Tensor

from tolka.data.batch import Batch
from tolka.distributed.ranks import ALONE, Ranks
from tolka.losses.cross_entropy import LossSum, Objective
from tolka.model_directory.read import ResumeState
from tolka.training.averaging import Ema


class Parallel:
    """One process by itself. Others compute a loss for each part of an update's batches, and sum the gradients."""

    shares_weights = False
    """Whether each rank keeps only a part of every weight."""

    def __init__(self, objective: Objective, ranks: Ranks = ALONE) -> None:
        self.objective, self.ranks = objective, ranks
        self.whole_objective = objective

    def begin(self, tokens: int) -> float:
        """Begin an update of all ranks' `tokens`; return what to divide each loss sum by."""
        return tokens

    def loss(self, batch: Batch, is_last: bool) -> LossSum:
        """Compute the loss of one part of the update's batches. is_last: whether it is the update's last one."""
        return self.objective(batch)

    def check_halves(self, batch: Batch, is_last: bool) -> None:
        """Raise LostProcessError if the batch, which did not fit into memory, must not go in halves."""

    def finish(self, nll: Tensor) -> Tensor:
        """Return the nll of all ranks, whose gradient each of them has now.

        A weight without a gradient on any rank has none afterwards either.
        """
        # DDP and FSDP have summed the gradients in the backward pass.
        return self.ranks.sum(nll) if self.ranks.size > 1 else nll

    def whole(self, ema: Ema | None) -> AbstractContextManager[None]:
        """Give the model of `whole_objective` the weights to translate with during a block; `ema`'s, if it is on."""
        return ema.in_place() if ema else nullcontext()

    def load_weights(self, load: Callable[[], object]) -> None:
        """Load the weights with a function that puts them into the model of `whole_objective`."""
        load()

    def tensors_of(self, saved: ResumeState) -> dict[str, Tensor]:
        """Return the tensors of a state that was read, as this rank needs them."""
        return saved.tensors

    def gathered(self, state: ResumeState) -> ResumeState:
        """Return the state as the first rank can save it."""
        return state
