"""One update of the weights, with the optimizer, gradient scaler and moving average that it needs."""

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from tolka.data.batch import Batch
from tolka.data.loader import Share
from tolka.kernels.half_weights import half_weights
from tolka.losses.cross_entropy import Objective
from tolka.model_directory.read import ResumeState
from tolka.nn.lora import has_adapters
from tolka.optim.optimizer_state import MOMENTS, load_state_tensors, state_tensors
from tolka.system.device import Precision
from tolka.system.memory import is_out_of_memory
from tolka.system.randomness import preserve_torch_random, random_state, set_random_state
from tolka.training.averaging import Ema
from tolka.training.options import TrainerConfig
from tolka.training.parallel.base import Parallel

# With a number, at the end of the name of a tensor that only one rank has; the first rank's have none.
_RANK = ".rank"
RAW = "raw."
"""Begins the names of weights in a resume state that are not those of the saved model."""


@dataclass(frozen=True)
class UpdateResult:
    """The result of one update."""

    # Two tensors () that stay on their device: reading them waits for it.
    nll: Tensor  # sum over `tokens`
    applied: Tensor  # whether loss and gradient were finite; if not, the weights are unchanged
    tokens: int
    splits: int = 0  # how often a batch did not fit into memory and was halved
    starved: bool = False  # whether the GPU had nothing left to do when the update began


class TrainStep:
    """Updates the weights of one objective; knows neither the schedule nor where the batches come from."""

    def __init__(
        self,
        config: TrainerConfig,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        parallel: Parallel | None = None,
    ) -> None:
        """parallel: how several processes train this objective together; by default there is one."""
        self.parallel = parallel or Parallel(objective)
        self.config, self.optimizer, self.precision = config, optimizer, precision
        # fp16 has gradients down to 6e-8 only: the loss is multiplied first, and the gradient divided in fp32.
        self.scaler = torch.amp.GradScaler(precision.device.type, enabled=precision.needs_scaler)
        self.ema = Ema(objective.model, config.ema) if config.ema else None
        # A saved model has the moving average's weights, or merged adapters: the trained weights are saved separately.
        self._saves_other_weights = bool(self.ema) or has_adapters(objective.model)
        # Autocast launches a kernel for each weight and gradient, and keeps norms and residuals in fp32.
        on_gpu, in_half = precision.device.type == "cuda", objective.model.trains_in_half
        self._in_half = on_gpu and in_half and precision.name == "bf16" and not self.parallel.shares_weights
        self._latest: torch.cuda.Event | None = None  # the end of the latest update on a GPU
        self._most_positions = sys.maxsize  # of the largest batch that may fit into memory
        # torch's fused kernels skip an update if `found_inf`, a tensor on the device, is set: the CPU need not wait.
        supported = getattr(optimizer, "_step_supports_amp_scaling", False)
        self.waits = precision.device.type == "cpu" or not supported

    def __call__(self, number: int, rate: float, shares: Sequence[Share]) -> UpdateResult:
        """Apply update `number` (from 1), with the gradient of the mean per token over the batches of all ranks.

        shares: this rank's, of each of these batches.
        """
        starved = self._latest is not None and self._latest.query()
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        # Each loss is a sum, divided by the tokens of all batches and ranks: a token weighs the same in whichever batch
        # it is. The mean of the batches' means would favour tokens of small batches.
        tokens = sum(share.tokens for share in shares)
        nll, splits = self._gradient(shares, self.parallel.begin(tokens))
        nll = self.parallel.finish(nll)
        # A tensor, not a bool: reading it would wait for the device at every update.
        applied = torch.isfinite(nll)
        weights = [weight for weight in self.objective.parameters() if weight.grad is not None]
        if weights:
            applied = self._apply(weights, number, applied)
        if nll.device.type == "cuda":
            self._latest = torch.cuda.Event()
            self._latest.record(torch.cuda.current_stream(nll.device))
        return UpdateResult(nll, applied, tokens, splits, starved)

    @contextmanager
    def memory_filled(self) -> Iterator[None]:
        """Allocate what training will hold during a block: the optimizer's moments and a gradient."""
        # Optimizers make their moments in the first update, so that a trial before it would find too much free.
        copies = 1 if self.optimizer.state else MOMENTS + 1
        weights = [weight for weight in self._names if weight.requires_grad and weight.grad is None]
        moments_and_gradient = [torch.empty_like(weight) for weight in weights for _ in range(copies)]
        try:
            yield
        finally:
            # Given back to the device, so that training's own blocks can be of other sizes.
            del moments_and_gradient
            torch.cuda.empty_cache()

    def rehearse(self, batch: Batch) -> int:
        """Run forward and backward on a batch and return how often it had to be halved; nothing else changes."""
        with preserve_torch_random(self.precision.device):
            _, splits = self._gradient([Share(batch, batch.tokens)], batch.tokens, rehearsed=True)
        self.optimizer.zero_grad()
        return splits

    def fits_in_memory(self, batch: Batch) -> bool:
        """Return whether the batch fits into memory in one piece; nothing else changes."""
        before = self._most_positions
        splits = self.rehearse(batch)
        self._most_positions = before
        return splits == 0

    def _gradient(self, shares: Sequence[Share], divisor: float, rehearsed: bool = False) -> tuple[Tensor, int]:
        """Accumulate the gradient of all batches' losses / divisor; return their nll, and how many splits it took.

        rehearsed: whether other ranks do not wait for it.
        """
        # A batch that does not fit into memory is halved, as is every later one of its size. The gradient is a sum over
        # pairs, so that halving changes nothing but dropout.
        parts, splits = [part for share in shares for part in self._fitting(share)], 0
        while True:
            # Again from the first part: the pass that failed has left a part of its gradient. None, not zeros: spares
            # the memory, and the optimizer leaves out a weight that has no gradient.
            self.optimizer.zero_grad()
            nll = torch.zeros((), device=self.precision.device)
            failed = None
            for number, part in enumerate(parts):
                is_last = number == len(parts) - 1 and not rehearsed
                try:
                    nll = nll + self._pass(part, divisor, is_last)
                except (RuntimeError, MemoryError) as error:
                    if not is_out_of_memory(error) or len(part.batch.source) == 1:
                        raise
                    self.parallel.check_halves(part.batch, is_last)
                    failed = number
                    break
            if failed is None:
                return nll, splits
            # Outside the handler the error is freed, and with it the tensors of the pass that failed.
            self._most_positions = min(self._most_positions, parts[failed].batch.positions - 1)
            splits += 1
            parts = [smaller for part in parts for smaller in self._fitting(part)]
            torch.cuda.empty_cache()

    def _fitting(self, share: Share) -> Iterator[Share]:
        """Yield the share, or parts of it that are no larger than what may fit, except single pairs."""
        if share.batch.positions <= self._most_positions or len(share.batch.source) == 1:
            yield share
            return
        for half in share.batch.halves():
            yield from self._fitting(replace(share, batch=half))

    def _pass(self, part: Share, divisor: float, is_last: bool = False) -> Tensor:
        """Run forward and backward; return the nll."""
        with self._half_weights():
            with nullcontext() if self._in_half else self.precision.autocast():
                sums = self.parallel.loss(part.batch.to(self.precision.device), is_last)
            # A rank without a pair computes one in vain (see `Share`): its gradient is 0.
            loss, nll = (sums.loss, sums.nll) if part.counts else (0.0 * sums.loss, 0.0 * sums.nll)
            # False if a plugin's LayerDrop has skipped all trained layers.
            if loss.requires_grad:
                self.scaler.scale(loss / divisor).backward()
        return nll.detach()

    def _half_weights(self) -> AbstractContextManager[None]:
        if not self._in_half:
            return nullcontext()
        model, parts = self.objective.model, list[nn.Module]()
        if self.parallel.ranks.size > 1:  # gradients are sent to other ranks as soon as a layer has them
            parts += model.layers()
        return half_weights([*parts, model], self.precision.dtype)

    def _apply(self, weights: list[nn.Parameter], number: int, applied: Tensor) -> Tensor:
        """Unscale, clip and step; skip the update if a gradient is non-finite. Return whether it was applied."""
        # Before clipping: the threshold is on the true gradient, not on the scaled one.
        self.scaler.unscale_(self.optimizer)
        norm = get_total_norm([weight.grad for weight in weights if weight.grad is not None])  # ()
        # Each rank may have a part of the gradients.
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        applied = applied & torch.isfinite(norm)
        # One factor for the whole gradient keeps its direction (Pascanu et al. 2013).
        if self.config.clip_norm:
            clip_grads_with_norm_(weights, self.config.clip_norm, norm)
        if self.waits and not self.precision.needs_scaler and not applied:
            return applied
        # On a GPU the update is launched in any case, and its kernel finds out whether to do nothing.
        if not self.waits and not self.precision.needs_scaler:
            self.optimizer.found_inf = (~applied).float()  # type: ignore[attr-defined]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.ema:
            self.ema.update(number)
        return applied

    def _generators(self) -> dict[str, Tensor]:
        """Return the states of this rank's generators, from which dropout is drawn."""
        own = {"rng": torch.get_rng_state()}
        if self.precision.device.type == "cuda":
            own["rng_cuda"] = torch.cuda.get_rng_state(self.precision.device)
        return own

    def _load_generators(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `_generators` returned; a rank that is new draws from a stream of its own."""
        rank = self.parallel.ranks.rank
        own = _of_rank(rank, tensors)
        if "rng" in own:
            torch.set_rng_state(own["rng"])
        else:
            # More ranks than before: the seed follows from the first rank's state, so that it too can be repeated.
            seed = hashlib.sha256(bytes(tensors["rng"].tolist()) + str(rank).encode()).digest()[:7]
            torch.manual_seed(int.from_bytes(seed, "big"))
        if "rng_cuda" in own and self.precision.device.type == "cuda":
            torch.cuda.set_rng_state(own["rng_cuda"], self.precision.device)

    @property
    def objective(self) -> Objective:
        """The model that is trained, with its loss."""
        return self.parallel.objective

    @property
    def rate(self) -> float:
        """The learning rate of the latest update."""
        return float(self.optimizer.param_groups[0]["lr"])

    def smoothed(self) -> AbstractContextManager[None]:
        """Give the whole model the weights to translate with during a block: the moving average's, if it is on."""
        return self.parallel.whole(self.ema)

    @property
    def _names(self) -> dict[Tensor, str]:
        return {weight: name for name, weight in self.objective.model.named_parameters()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that the next update depends on besides the saved weights: tensors, and values for JSON."""
        tensors = state_tensors(self.optimizer, self._names)
        for rank, states in enumerate(self.parallel.ranks.gather(self._generators())):
            tensors |= {f"{name}{_RANK}{rank}" if rank else name: state for name, state in states.items()}
        # Copies where `smoothed` is about to overwrite the model's own.
        if self._saves_other_weights:
            copy = self.ema is not None
            tensors |= {f"{RAW}{name}": weight.detach().to("cpu", copy=copy) for weight, name in self._names.items()}
        if self.ema:
            tensors |= {f"ema.{name}": weight.to("cpu", copy=True) for name, weight in self.ema.average.items()}
        facts = {"scaler": self.scaler.state_dict(), "random": random_state(), "most_positions": self._most_positions}
        return tensors, facts

    def load_state(self, saved: ResumeState, load_weights: Callable[[], object]) -> None:
        """Restore what `state` returned. load_weights: puts the saved weights into the whole model."""
        tensors, facts = self.parallel.tensors_of(saved), saved.facts
        self.scaler.load_state_dict(facts["scaler"])
        # Under FSDP all ranks must have the same number of passes, so that none may halve its batch.
        if not self.parallel.shares_weights:
            self._most_positions = facts["most_positions"]
        set_random_state(facts["random"])
        self._load_generators(tensors)
        if not any(name.startswith(RAW) for name in tensors):
            self.parallel.load_weights(load_weights)
        for weight, name in self._names.items():
            if f"{RAW}{name}" in tensors:
                weight.data.copy_(tensors[f"{RAW}{name}"])
            if self.ema:
                self.ema.average[name].copy_(tensors[f"ema.{name}"])
        load_state_tensors(self.optimizer, self._names, _of_rank(0, tensors))


def _of_rank(rank: int, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of one rank, by their names without it; the first rank's include those common to all."""
    named = {name.partition(_RANK): tensor for name, tensor in tensors.items()}
    return {name: tensor for (name, _, of), tensor in named.items() if of == str(rank or "")}
