"""One update of the weights, with the optimizer, gradient scaler and moving average that it needs."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from tolka.data.batch import Batch
from tolka.losses.objective import Objective
from tolka.nn.lora import has_adapters
from tolka.system.device import Precision
from tolka.system.memory import empty_cache, is_out_of_memory
from tolka.system.randomness import random_state, set_random_state, torch_random_kept
from tolka.system.ranks import ALONE, Ranks
from tolka.training.averaging import Ema
from tolka.training.optimizer_state import load_state_tensors, state_tensors
from tolka.training.options import TrainerConfig
from tolka.training.shapes import padded_to_few_shapes


@dataclass(frozen=True)
class UpdateResult:
    """The result of one update.

    nll: sum over its `tokens`, (). applied: whether loss and gradient were finite, (); if not, the weights are
    unchanged. Both stay on their device: reading them waits for it. splits: how often a batch did not fit into memory
    and was halved.
    """

    nll: Tensor
    tokens: int
    applied: Tensor
    splits: int = 0


@dataclass(frozen=True)
class Group:
    """The batches of one update, as far as they are this rank's. tokens: of all ranks' batches."""

    batches: Sequence[Batch]
    tokens: int

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> "Group":
        """Return these batches as those of a training in one process."""
        return cls(batches, sum(batch.tokens for batch in batches))


MOMENTS = 2  # tensors of a weight's size that an optimizer keeps, at most


class TrainStep:
    """Updates the weights of one objective; knows neither the schedule nor where the batches come from."""

    def __init__(
        self,
        config: TrainerConfig,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        ranks: Ranks = ALONE,
    ) -> None:
        """ranks: the processes that train this model together, each with its share of every update's batches."""
        self._ranks = ranks
        self.config, self.objective, self.optimizer, self.precision = config, objective, optimizer, precision
        self.scaler = torch.amp.GradScaler(precision.device.type, enabled=precision.needs_scaler)
        self.ema = Ema(objective.model, config.ema) if config.ema else None
        # A saved model has the moving average's weights, or merged adapters: the trained weights are saved separately.
        self._saves_other_weights = bool(self.ema) or has_adapters(objective.model)
        self._most_positions = sys.maxsize  # of the largest batch that may fit into memory
        # torch's fused kernels skip an update if `found_inf`, a tensor on the device, is set: the CPU need not wait.
        self.waits = precision.device.type == "cpu" or not getattr(optimizer, "_step_supports_amp_scaling", False)

    def __call__(self, number: int, rate: float, group: Group) -> UpdateResult:
        """Apply update `number` (from 1), with the gradient of the mean per token over the batches of all ranks."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.objective.second_pass = number > self.config.agreement_after
        nll, splits = self._gradient(group.batches, group.tokens)
        nll = self._summed(nll)
        applied = torch.isfinite(nll)
        weights = [weight for weight in self.objective.parameters() if weight.grad is not None]
        if weights:
            applied = self._apply(weights, number, applied)
        return UpdateResult(nll, group.tokens, applied, splits)

    @contextmanager
    def memory_filled(self) -> Iterator[None]:
        """Allocate what training will hold during a block: the optimizer's moments and a gradient."""
        weights = [] if self.optimizer.state else [weight for weight in self._names if weight.requires_grad]
        moments_and_gradient = [torch.empty_like(weight) for weight in weights for _ in range(MOMENTS + 1)]
        try:
            yield
        finally:
            del moments_and_gradient
            empty_cache(self.precision.device)

    def rehearse(self, batch: Batch) -> int:
        """Run forward and backward on a batch and return how often it had to be halved; nothing else changes."""
        with torch_random_kept(self.precision.device):
            _, splits = self._gradient([batch], batch.tokens)
        self._clear_gradients()
        return splits

    def fits_in_memory(self, batch: Batch) -> bool:
        """Return whether the batch fits into memory in one piece; nothing else changes."""
        fits = True
        with torch_random_kept(self.precision.device):
            try:
                self._pass(batch, batch.tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                fits = False
        self._clear_gradients()
        empty_cache(self.precision.device)
        return fits

    def _gradient(self, group: Sequence[Batch], tokens: int) -> tuple[Tensor, int]:
        """Accumulate the gradient of all batches' mean over `tokens`; return their nll, and how many splits it took.

        A batch that does not fit into memory is halved, as is every later one of its size. The gradient is a sum over
        pairs, so that only dropout changes it.
        """
        parts, splits = [part for batch in group for part in self._fitting(batch)], 0
        while True:
            self._clear_gradients()
            nll = torch.zeros((), device=self.precision.device)
            failed = None
            for number, batch in enumerate(parts):
                try:
                    nll = nll + self._pass(batch, tokens)
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error) or len(batch.source) == 1:
                        raise
                    failed = number
                    break
            if failed is None:
                return nll, splits
            # Outside the handler the error is freed, and with it the tensors of the pass that failed.
            self._most_positions = min(self._most_positions, parts[failed].positions - 1)
            splits += 1
            parts = [part for batch in parts for part in self._fitting(batch)]
            empty_cache(self.precision.device)

    def _summed(self, nll: Tensor) -> Tensor:
        """Replace the gradient by its sum over the ranks, and return that of the nll.

        A weight without a gradient on any rank, as in a layer that LayerDrop skipped, has none afterwards either.
        """
        if self._ranks.size == 1:
            return nll
        weights = [weight for weight in self.objective.parameters() if weight.requires_grad]
        used = torch.tensor([weight.grad is not None for weight in weights], dtype=nll.dtype, device=nll.device)
        for weight in weights:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        nll = nll.clone()
        self._ranks.sum([nll, used, *(weight.grad for weight in weights if weight.grad is not None)])
        if not used.all():
            for weight, count in zip(weights, used.tolist(), strict=True):
                weight.grad = weight.grad if count else None
        return nll

    def _fitting(self, batch: Batch) -> Iterator[Batch]:
        """Yield the batch, or parts of it that are no larger than what may fit, except single pairs."""
        if batch.positions <= self._most_positions or len(batch.source) == 1:
            yield batch
            return
        for half in batch.halves():
            yield from self._fitting(half)

    def _clear_gradients(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def _pass(self, batch: Batch, tokens: int) -> Tensor:
        """Run forward and backward; return the nll."""
        if self.config.compile == "reduce-overhead":
            batch = padded_to_few_shapes(batch)
            torch.compiler.cudagraph_mark_step_begin()
        with self.precision.autocast():
            sums = self.objective(batch.to(self.precision.device))
        if sums.loss.requires_grad:  # False if LayerDrop has skipped all trained layers
            self.scaler.scale(sums.loss / tokens).backward()
        nll: Tensor = sums.nll.detach()
        return nll

    def _apply(self, weights: list[nn.Parameter], number: int, applied: Tensor) -> Tensor:
        """Unscale, clip and step; skip the update if a gradient is non-finite. Return whether it was applied."""
        self.scaler.unscale_(self.optimizer)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        norm = get_total_norm(gradients)
        if not self.precision.needs_scaler:  # the scaler itself skips updates that overflow, to find its scale
            applied = applied & torch.isfinite(norm)
        if self.config.clip_value:
            nn.utils.clip_grad_value_(weights, self.config.clip_value)
            norm = get_total_norm(gradients)
        if self.config.clip_norm:
            clip_grads_with_norm_(weights, self.config.clip_norm, norm)
        if self.waits and not self.precision.needs_scaler and not applied:
            return applied
        if not self.waits and not self.precision.needs_scaler:
            self.optimizer.found_inf = (~applied).float()  # type: ignore[attr-defined]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.ema:
            self.ema.update(number)
        return applied

    def _random_tensors(self) -> dict[str, Tensor]:
        """Return the states of this rank's generators, from which dropout is drawn."""
        states = {"rng": torch.get_rng_state()}
        if self.precision.device.type == "cuda":
            states["rng_cuda"] = torch.cuda.get_rng_state(self.precision.device)
        return states

    def _load_random_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the states of this rank's generators; a rank that is new draws from a stream of its own."""
        end = f".{self._ranks.rank}" if self._ranks.rank else ""
        if f"rng{end}" not in tensors:
            seed = int.from_bytes(hashlib.sha256(bytes(tensors["rng"].tolist()) + end.encode()).digest()[:7], "big")
            torch.manual_seed(seed)
            return
        torch.set_rng_state(tensors[f"rng{end}"])
        if f"rng_cuda{end}" in tensors and self.precision.device.type == "cuda":
            torch.cuda.set_rng_state(tensors[f"rng_cuda{end}"], self.precision.device)

    @property
    def rate(self) -> float:
        """The learning rate of the latest update."""
        return float(self.optimizer.param_groups[0]["lr"])

    def smoothed(self) -> AbstractContextManager[None]:
        """Give the model the weights to translate with during a block: the moving average's, if it is on."""
        return self.ema.in_place() if self.ema else nullcontext()

    @property
    def _names(self) -> dict[Tensor, str]:
        return {weight: name for name, weight in self.objective.model.named_parameters()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what the next update depends on besides the saved weights: tensors, and values for JSON."""
        tensors = state_tensors(self.optimizer, self._names)
        for rank, states in enumerate(self._ranks.gather(self._random_tensors())):
            tensors |= {f"{name}.{rank}" if rank else name: state for name, state in states.items()}
        if self._saves_other_weights:  # copies: `smoothed` is about to overwrite the model's own
            tensors |= {f"raw.{name}": weight.detach().to("cpu", copy=True) for weight, name in self._names.items()}
        if self.ema:
            tensors |= {f"ema.{name}": weight.to("cpu", copy=True) for name, weight in self.ema.average.items()}
        facts = {"scaler": self.scaler.state_dict(), "random": random_state(), "most_positions": self._most_positions}
        return tensors, facts

    def load_state(
        self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], load_weights: Callable[[], object]
    ) -> None:
        """Restore what `state` returned. load_weights: puts the saved weights into the model."""
        self.scaler.load_state_dict(facts["scaler"])
        self._most_positions = facts.get("most_positions", sys.maxsize)
        if "random" in facts:
            set_random_state(facts["random"])
        self._load_random_tensors(tensors)
        if not self._saves_other_weights:
            load_weights()
        for weight, name in self._names.items():
            if self._saves_other_weights:
                weight.data.copy_(tensors[f"raw.{name}"])
            if self.ema:
                self.ema.average[name].copy_(tensors[f"ema.{name}"])
        load_state_tensors(self.optimizer, self._names, tensors)
