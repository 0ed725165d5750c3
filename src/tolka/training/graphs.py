"""Forward and backward passes as CUDA graphs: all their kernels are started at once.

A small model's pass is a thousand kernels of a few microseconds each, which Python starts more slowly than a GPU runs
them. Captured once for each shape of batch, they are replayed with other numbers (Nguyen et al. 2021, PyTorch's blog).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.errors import ConfigError, TolkaError
from tolka.losses import Objective
from tolka.models.base import ModelConfig
from tolka.models.transformer_layers import TransformerOptions
from tolka.nn.variable_length import has_packed_attention
from tolka.runtime import Precision, is_out_of_memory, torch_random_kept

_MOST = 128  # graphs; batches of further shapes are computed without one
_WARM_UP = 2  # passes before a capture: libraries set themselves up in the first
_FINENESS = 4  # bits of a number of tokens that are told apart: at most an eighth is added to it, 5 % as a rule
_LEAST = 16  # of what sizes are multiples

Shape = tuple[int, int, int, int]
"""Sentences, source tokens, target tokens, longest side."""


def shape_for(batch: Batch) -> Shape:
    """What the batch is filled up to, so that few shapes serve all batches: see `Batch.filled`."""
    longest = _power_of_two(max(_LEAST, batch.source.size(1), batch.target_in.size(1)))
    sources, targets = int(batch.source_lengths.sum()), int(batch.target_lengths.sum())
    more = 1  # sentences, of a token at least: as few as have room for what either side is rounded up by
    while max(_rounded(tokens + more) - tokens for tokens in (sources, targets)) > more * longest:
        more += 1
    return _power_of_two(len(batch.source) + more), _rounded(sources + more), _rounded(targets + more), longest


def _power_of_two(size: int) -> int:
    """The next, or itself."""
    return 1 << (size - 1).bit_length()


def _rounded(tokens: int) -> int:
    """Up to as many as are told apart."""
    step = max(_LEAST, 1 << max(0, tokens.bit_length() - _FINENESS))
    return -(-tokens // step) * step


@dataclass(frozen=True)
class Recording:
    """What was recorded: how to have it done again, and where its result is then."""

    replay: Callable[[], None]
    result: Tensor


def record(run: Callable[[], Tensor], device: torch.device, pool: Any) -> Recording:
    """Capture a function of tensors that stay where they are; it is run a few times first. RuntimeError if it cannot.

    pool: memory of graphs that are never replayed at the same time.
    """
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    current = torch.cuda.current_stream(device)
    stream.wait_stream(current)
    graph = torch.cuda.CUDAGraph()
    # The last of these leads back to the current stream, also when a capture fails.
    with torch.cuda.device(device), torch.cuda.stream(current):
        with torch_random_kept(device), torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                run()
        current.wait_stream(stream)
        # Another thread may be copying the model to save it.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            result = run()
    return Recording(graph.replay, result)


def _first(error: BaseException) -> BaseException:
    """What went wrong; the end of the capture that it broke off raises another error."""
    while error.__context__ is not None:
        error = error.__context__
    return error


@dataclass(frozen=True)
class _Captured:
    """Where a recording reads its batch and the share of its loss, and what it leaves."""

    recording: Recording
    batch: Batch
    share: Tensor


def check_graphs(precision: Precision, model: ModelConfig) -> None:
    """ConfigError where passes cannot be captured: padded attention would compute the most of it for nothing."""
    if precision.device.type != "cuda" or precision.name != "bf16":
        raise ConfigError(
            f"trainer.cuda_graphs=true needs a CUDA device that calculates in bf16, not {precision.device.type} in "
            f"{precision.name}: leave it out"
        )
    if not isinstance(model, TransformerOptions):
        raise ConfigError("trainer.cuda_graphs=true is for a Transformer: leave it out")
    keys, values = model.key_width, model.value_width
    if not has_packed_attention(precision.device, torch.bfloat16, keys, values):
        raise ConfigError(
            "trainer.cuda_graphs=true needs a GPU's kernel for sentences of unlike length, and here there is none for "
            f"keys of {keys} and values of {values} numbers a head (model.d_model / model.heads, model.d_v; a multiple "
            "of 8, and alike): leave it out"
        )


class CapturedPasses:
    """The passes of one objective; what they add to the gradients stays where it is from update to update."""

    def __init__(self, objective: Objective, precision: Precision) -> None:
        self._objective, self._precision = objective, precision
        self._weights = [weight for weight in objective.parameters() if weight.requires_grad]
        self._captured: dict[Shape, _Captured] = {}
        self._pool = torch.cuda.graph_pool_handle() if precision.device.type == "cuda" else None

    def clear_gradients(self) -> None:
        """To zero, in place: the graphs add to these very tensors."""
        for weight in self._weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        torch._foreach_zero_(self._gradients)

    @property
    def _gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self._weights if weight.grad is not None]

    def __call__(self, batch: Batch, share: float) -> Tensor | None:
        """Add the gradient of `share` times the batch's loss to what there is; its nll, ().

        batch: on the CPU. None, and nothing done, where there are as many graphs as may be, none of them for it.
        TolkaError when the passes cannot be captured.
        """
        shape = shape_for(batch)
        if shape not in self._captured and len(self._captured) == _MOST:
            return None
        given = batch.filled(*shape).to(self._precision.device)
        if shape not in self._captured:
            self._captured[shape] = self._capture(given)
        captured = self._captured[shape]
        for field in fields(given):
            place = getattr(captured.batch, field.name)
            if isinstance(place, Tensor):
                place.copy_(getattr(given, field.name))
        captured.share.fill_(share)
        captured.recording.replay()
        return captured.recording.result.clone()

    def _capture(self, given: Batch) -> _Captured:
        """given: whose tensors the recording reads from then on."""
        device = self._precision.device
        share = torch.zeros((), device=device)
        kept = [gradient.clone() for gradient in self._gradients]
        try:
            recording = record(lambda: self._pass(given, share), device, self._pool)
        except RuntimeError as error:
            first = _first(error)
            if is_out_of_memory(first):  # the batch is halved
                raise first from None
            raise TolkaError(
                f"trainer.cuda_graphs=true: a pass over {len(given.source)} sentences cannot be captured "
                f"({str(first).partition(chr(10))[0]}); leave it out"
            ) from None
        torch._foreach_copy_(self._gradients, kept)  # without what running it has added
        return _Captured(recording, given, share)

    def _pass(self, batch: Batch, share: Tensor) -> Tensor:
        with self._precision.autocast():
            sums = self._objective(batch)
        found = torch.autograd.grad(sums.loss * share, self._weights, allow_unused=True)
        pairs = [pair for pair in zip(self._gradients, found, strict=True) if pair[1] is not None]
        torch._foreach_add_([gradient for gradient, _ in pairs], [part for _, part in pairs])
        nll: Tensor = sums.nll.detach()
        return nll
