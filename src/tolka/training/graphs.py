"""Training's forward and backward passes as CUDA graphs, one for each shape of batch (see `tolka.cuda_graph`)."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from tolka.batch import Batch
from tolka.cuda_graph import GraphPool, Recording, power_of_two, recorded
from tolka.errors import ConfigError
from tolka.losses import Objective
from tolka.models.base import ModelConfig
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.variable_length import has_packed_attention
from tolka.runtime import Precision

_MOST = 128  # graphs; batches of further shapes are computed without one
_FINENESS = 4  # bits of a number of tokens that are told apart: at most an eighth is added to it, 5 % as a rule
_LEAST = 16  # of what sizes are multiples

Shape = tuple[int, int, int, int]
"""Sentences, source tokens, target tokens, longest side."""


def shape_for(batch: Batch) -> Shape:
    """What the batch is filled up to, so that few shapes serve all batches: see `Batch.filled`."""
    longest = power_of_two(max(_LEAST, batch.source.size(1), batch.target_in.size(1)))
    sources, targets = int(batch.source_lengths.sum()), int(batch.target_lengths.sum())
    more = 1  # sentences, of a token at least: as few as have room for what either side is rounded up by
    while max(_rounded(tokens + more) - tokens for tokens in (sources, targets)) > more * longest:
        more += 1
    return power_of_two(len(batch.source) + more), _rounded(sources + more), _rounded(targets + more), longest


def _rounded(tokens: int) -> int:
    """Up to as many as are told apart."""
    step = max(_LEAST, 1 << max(0, tokens.bit_length() - _FINENESS))
    return -(-tokens // step) * step


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
        self._pool = GraphPool(precision.device)

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
        what = f"a pass over {len(given.source)} sentences"
        recording = recorded(lambda: self._pass(given, share), self._pool, "trainer.cuda_graphs", what)
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
