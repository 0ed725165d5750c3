"""How processes train together, as an update sees it; the simplest way is to sum the gradients at its end."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import Batch
from tolka.distributed.ranks import ALONE, Ranks
from tolka.losses.cross_entropy import LossSum
from tolka.losses.objective import Objective
from tolka.model_directory.resume_state import ResumeState
from tolka.training.averaging import Ema


class Parallel:
    """The gradients of all ranks are summed after their last pass; in one process there is nothing to sum.

    The other ways also compute a loss for each part of an update's batches, and then finish the gradient.
    """

    shares_weights = False
    """Whether each rank keeps only a part of every weight."""

    def __init__(self, objective: Objective, ranks: Ranks = ALONE) -> None:
        self.objective, self.ranks = objective, ranks
        self.whole_objective = objective

    def begin(self, tokens: int, largest: int) -> float:
        """Begin an update; return what to divide each loss sum by.

        tokens: of the update's batches. largest: positions of the largest part of any rank.
        """
        return tokens

    def loss(self, batch: Batch, is_last: bool) -> LossSum:
        """Compute the loss of one part of the update's batches. is_last: whether it is the update's last one."""
        sums: LossSum = self.objective(batch)
        return sums

    def check_halves(self, batch: Batch) -> None:
        """Raise TolkaError if the batch, which did not fit into memory, must not go in halves."""

    def finish(self, nll: Tensor, split: bool) -> Tensor:
        """Make the gradient that of all ranks; return their nll. split: whether a batch went in halves just now.

        A weight without a gradient on any rank, as in a layer that LayerDrop skipped, has none afterwards either.
        """
        if self.ranks.size == 1:
            return nll
        weights = [weight for weight in self.objective.parameters() if weight.requires_grad]
        used = torch.tensor([weight.grad is not None for weight in weights], dtype=nll.dtype, device=nll.device)
        for weight in weights:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        nll = nll.clone()
        self.ranks.sum([nll, used, *(weight.grad for weight in weights if weight.grad is not None)])
        if not used.all():
            for weight, count in zip(weights, used.tolist(), strict=True):
                weight.grad = weight.grad if count else None
        return nll

    def whole(self, ema: Ema | None) -> AbstractContextManager[None]:
        """Give the model of `whole_objective` the weights to translate with during a block; `ema`'s, if it is on."""
        return ema.in_place() if ema else nullcontext()

    def load_weights(self, load: Callable[[], object]) -> None:
        """Load the weights with a function that puts them into the model of `whole_objective`."""
        load()

    def tensors_of(self, saved: ResumeState) -> dict[str, Tensor]:
        """Return the tensors of a state that was read, as this rank needs them."""
        return {**saved.tensors, **(saved.shards.read() if saved.shards else {})}

    def written(self, state: ResumeState, run: Path) -> ResumeState:
        """Return the state as the first rank can save it. run: the run's folder."""
        return state

    def close(self) -> None:
        """Wait for what this rank still writes."""

    def facts(self) -> dict[str, Any]:
        """Return values for JSON on which later updates depend, the same on all ranks."""
        return {}

    def load_facts(self, facts: Mapping[str, Any]) -> None:
        """Restore what `facts` returned."""
