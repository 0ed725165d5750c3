"""Data parallel training with torch's DistributedDataParallel: gradients are summed while others are still computed."""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from tolka.data.batch import Batch
from tolka.errors import LostProcessError
from tolka.losses.cross_entropy import LossSum
from tolka.losses.objective import Objective
from tolka.system.device import device_memory
from tolka.system.ranks import Ranks
from tolka.training.parallel.base import Parallel

_POWERSGD_RANK = 4
_ONE_BUCKET = 10**6  # MB: with several at once PowerSGD's sums wait for each other under gloo
_POWERSGD_BEGINS = 100  # updates that are summed in full before: the first gradients have no low rank


class Overlapped(Parallel):
    """All passes of an update but the last accumulate gradients; in the last, DDP sums them bucket by bucket.

    A rank that runs out of memory in that pass could not begin it again, as the others wait for its sums. So the
    gradients are summed afterwards until batches of this size have fitted on all ranks.
    """

    def __init__(self, objective: Objective, ranks: Ranks, communication: str = "fp32") -> None:
        """communication: fp32, bf16 (half the bytes) or powersgd (Vogels et al. 2019), in which sums are sent."""
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
                bucket_cap_mb=_ONE_BUCKET if communication == "powersgd" else None,
            )
        self._powersgd: PowerSGDState | None = None
        if communication == "bf16":
            # By its own name DDP refuses it without a GPU, though gloo sums bf16 too.
            self._module.register_comm_hook(None, lambda group, bucket: bf16_compress_hook(group, bucket))
        elif communication == "powersgd":
            # Its second sum begins when the first one is done: among DDP's own, ranks could disagree about the order.
            self._powersgd = PowerSGDState(dist.new_group(), _POWERSGD_RANK, _POWERSGD_BEGINS)
            self._module.register_comm_hook(self._powersgd, powerSGD_hook)
        self._fitted = 0  # positions of the largest part that has fitted into the memory of every rank
        self._largest = 0
        self._overlaps = False

    def begin(self, tokens: int, own_tokens: int, largest: int) -> float:
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

    def updated(self, number: int, applied: Tensor) -> None:
        """Forget what PowerSGD keeps of a gradient that was not finite: it would spoil all later ones."""
        if self._powersgd and not applied:
            for _, kept in self._kept():
                kept.clear()

    def own_state(self) -> dict[str, Tensor]:
        """Return what PowerSGD keeps for each bucket: the error that its approximation left, and its last factors."""
        return {
            f"powersgd.{kind}.{bucket}": value.cpu() for kind, kept in self._kept() for bucket, value in kept.items()
        }

    def load_own_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `own_state` returned; without it, PowerSGD begins with an error of 0."""
        for kind, kept in self._kept():
            kept.clear()
            prefix = f"powersgd.{kind}."
            saved = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            kept.update({int(bucket): value.to(self._device) for bucket, value in saved.items()})

    def _kept(self) -> list[tuple[str, dict[int, Tensor]]]:
        state = self._powersgd
        return [("error", state.error_dict), ("p", state.p_memory_dict), ("q", state.q_memory_dict)] if state else []

    @property
    def _device(self) -> torch.device:
        return next(self.objective.parameters()).device

    def facts(self) -> dict[str, Any]:
        """Return which batches have fitted, into how much memory, and how many sums PowerSGD has made."""
        sums = self._powersgd.iter if self._powersgd else 0
        return {"fitted": self._fitted, "memory": device_memory(self._device), "powersgd": sums}

    def load_facts(self, facts: Mapping[str, Any]) -> None:
        """Restore what `facts` returned."""
        others = self.ranks.most(facts.get("memory") != device_memory(self._device))[0]
        self._fitted = 0 if others else facts.get("fitted", 0)
        if self._powersgd:
            self._powersgd.iter = facts.get("powersgd", 0)
