"""Training with torch's fully_shard (FSDP2; Zhao et al. 2023): each process keeps a part of every weight."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from tolka.data.batch import Batch
from tolka.distributed.ranks import Ranks
from tolka.errors import LostProcessError
from tolka.losses.cross_entropy import Objective
from tolka.model_directory.read import ResumeState
from tolka.system.device import Precision
from tolka.training.averaging import Ema
from tolka.training.parallel.base import Parallel


class Sharded(Parallel):
    """A layer's weights are gathered when it computes, its gradients summed where their part of the weights is kept.

    The optimizer sees the parts only.
    """

    # To validate and to save, `whole` gathers the weights into an ordinary model, the twin, which is empty otherwise.

    shares_weights = True

    def __init__(self, objective: Objective, ranks: Ranks, precision: Precision) -> None:
        """objective: whose model is shared out from here on; build the optimizer after this."""
        super().__init__(objective, ranks)
        # The twin's weights are never copied, as the whole model may fill the GPU.
        empty = {
            id(weight): nn.Parameter(weight.new_empty(0), weight.requires_grad) for weight in objective.parameters()
        }
        self.whole_objective = copy.deepcopy(objective, empty)
        self._twin = self.whole_objective.model
        mesh = init_device_mesh(precision.device.type, (ranks.size,))
        # Layer by layer, so that only one layer's weights are whole at a time; then what is left, as embeddings.
        for module in (*objective.model.layers(), objective):
            # Gathered in fp32: autocast does the rest.
            shared: Any = fully_shard(module, mesh=mesh)
            assert isinstance(shared, FSDPModule)
            # Summed, not averaged: the loss is divided by the tokens of all ranks. Gloo knows nothing but sums.
            shared.set_gradient_divide_factor(1.0)
            shared.set_force_sum_reduction_for_comms(True)
        named = objective.model.named_parameters()
        self._weights = {name: weight for name, weight in named if isinstance(weight, DTensor)}

    def check_halves(self, batch: Batch, is_last: bool) -> None:
        """Raise LostProcessError, as all ranks compute each layer together."""
        raise LostProcessError(
            f"process {self.ranks.rank} is out of memory with a batch of {batch.positions} positions: lower "
            "batching.tokens and raise trainer.accumulate, or set trainer.recompute=true"
        )

    @contextmanager
    def whole(self, ema: Ema | None) -> Iterator[None]:
        """Fill the twin with the weights, or with their moving average, for the length of a block."""
        # Every rank gathers every weight, in the same order, also those that neither validate nor save.
        weights = ema.average if ema else self._weights
        for name, weight in self._twin.named_parameters():
            weight.data = _whole(weights[name])
        try:
            yield
        finally:
            self._empty()

    def _empty(self) -> None:
        for weight in self._twin.parameters():
            weight.data = weight.data.new_empty(0)

    def load_weights(self, load: Callable[[], object]) -> None:
        """Take the weights that `load` puts into the twin."""
        for name, weight in self._twin.named_parameters():
            weight.data = torch.empty(self._weights[name].shape, dtype=weight.dtype, device=weight.device)
        load()
        for name, weight in self._twin.named_parameters():
            self._weights[name].data.copy_(_placed(weight.detach(), self._weights[name]))
        self._empty()

    def tensors_of(self, saved: ResumeState) -> dict[str, Tensor]:
        """Return a state's tensors, shared out as the weights that they belong to; of each only this rank's part."""
        return {name: self._part_of(name, tensor) for name, tensor in saved.tensors.items()}

    def _part_of(self, name: str, tensor: Tensor) -> Tensor:
        """Return this rank's part of a state's tensor; the tensor itself where it belongs to no weight."""
        kind, _, rest = name.partition(".")
        weight = self._weights.get(rest.rpartition(".")[0] if kind == "optimizer" else rest)
        # A count of steps has the name of a weight, and not its shape.
        if weight is None or weight.shape != tensor.shape or isinstance(tensor, DTensor):
            return tensor
        return _placed(tensor.to(weight.device), weight)

    def gathered(self, state: ResumeState) -> ResumeState:
        """Return the state with whole tensors, on the CPU of the first rank; without any on the others."""
        # One after the other: a GPU may not hold all of them. Every rank takes part, in the same order.
        gathered = ((name, _whole(tensor)) for name, tensor in state.tensors.items())
        return replace(state, tensors={name: whole.cpu() for name, whole in gathered if self.ranks.is_first})


def _placed(tensor: Tensor, weight: DTensor) -> DTensor:
    """Return a tensor that every rank has, shared out as a weight of its shape."""
    # No rank is the source: each takes its part of what it has, and nothing is sent.
    return distribute_tensor(tensor, weight.device_mesh, weight.placements, src_data_rank=None)


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor
