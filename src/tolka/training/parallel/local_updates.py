"""DiLoCo (Douillard et al. 2023): each process trains by itself, and they meet once in many updates."""

from collections.abc import Mapping

import torch
from torch import Tensor

from tolka.losses.objective import Objective
from tolka.system.ranks import Ranks
from tolka.training.optimizer_state import load_state_tensors, state_tensors
from tolka.training.parallel.base import Parallel


class LocalUpdates(Parallel):
    """Each rank makes its own updates (inner steps) on its share of the batches, from common weights (outer ones).

    After every `sync_every` updates the outer weights make a step of SGD with Nesterov momentum, whose gradient is the
    difference between them and the mean of all ranks' weights, and every rank goes on from them. The optimizer's own
    moments stay with each rank. Models are validated and saved, and decisions taken, only when all ranks meet.
    """

    together = False

    def __init__(
        self,
        objective: Objective,
        ranks: Ranks,
        sync_every: int,
        rate: float,
        momentum: float,
        communication: str = "fp32",
    ) -> None:
        """rate, momentum: of the outer steps. communication: fp32 or bf16, in which the differences are sent."""
        super().__init__(objective, ranks)
        self._every = sync_every
        self._sent_as = torch.bfloat16 if communication == "bf16" else None
        weights = {name: weight for name, weight in objective.model.named_parameters() if weight.requires_grad}
        self._weights: list[Tensor] = list(weights.values())
        self._outer = [weight.detach().clone() for weight in self._weights]
        self._optimizer = torch.optim.SGD(self._outer, rate, momentum, nesterov=momentum > 0)
        self._names = dict(zip(self._outer, weights, strict=True))
        self._tokens, self._own_tokens = 1, 1

    def begin(self, tokens: int, own_tokens: int, largest: int) -> float:
        """As in Parallel: the gradient is that of this rank's share."""
        self._tokens, self._own_tokens = tokens, max(1, own_tokens)
        return self._own_tokens

    def finish(self, nll: Tensor, split: bool) -> Tensor:
        """Return what the nll of all ranks is if it is this rank's per token; nothing is sent."""
        return nll * (self._tokens / self._own_tokens)

    def meets(self, number: int) -> bool:
        """Return whether the ranks meet after update `number`, and before the first."""
        return number % self._every == 0

    def updated(self, number: int, applied: Tensor) -> None:
        """Make an outer step if the ranks meet after this update."""
        if self.meets(number):
            self._outer_step()

    @torch.no_grad()
    def _outer_step(self) -> None:
        pairs = zip(self._outer, self._weights, strict=True)
        moved = [(outer - weight).to(self._sent_as or outer.dtype) for outer, weight in pairs]
        self.ranks.sum(moved)
        for outer, difference in zip(self._outer, moved, strict=True):
            outer.grad = difference.to(outer.dtype) / self.ranks.size
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        torch._foreach_copy_(self._weights, self._outer)

    def all_applied(self, applied: list[bool]) -> list[bool]:
        """Return which of the updates since the last meeting every rank has applied."""
        return [not skipped for skipped in self.ranks.most(*(not each for each in applied))]

    def common_state(self) -> dict[str, Tensor]:
        """Return the momentum of the outer steps; the outer weights are the model's, as it is saved when ranks meet."""
        return {f"outer.{name}": tensor for name, tensor in state_tensors(self._optimizer, self._names).items()}

    @torch.no_grad()
    def load_common_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `common_state` returned, and begin from the model's weights."""
        torch._foreach_copy_(self._outer, self._weights)
        prefix = "outer."
        outer = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        load_state_tensors(self._optimizer, self._names, outer)
