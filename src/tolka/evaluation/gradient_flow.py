"""How far gradients flow back through a recurrent encoder (Bengio et al. 1994; Pascanu et al. 2013, equation 5).

Shapes: B sentences, S source positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from tolka.data.batch import Batch, collate
from tolka.errors import ConfigError
from tolka.losses.cross_entropy import token_nll
from tolka.models.base import Seq2Seq
from tolka.text.characters import CharacterForm
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer

_STATE_PARTS = ("h", "C")
_PAIRS = 64  # measured as one batch


@dataclass(frozen=True)
class GradientFlow:
    """Gradient norms of one layer and direction ("encoder.0.forward") and one part of its state, h or C.

    norms: by distance, in steps, from the final state of the recurrence (0): the norm of the total derivative of a
    sentence's loss, in nats, with respect to the state; the mean over the `sentences` that are long enough.
    """

    layer: str
    state: str
    norms: list[float]
    sentences: list[int]


class GradientFlowMeter:
    """Measures `gradient_flow` on the first pairs of a validation set."""

    def __init__(
        self, pairs: Sequence[Pair], tokenizer: Tokenizer, characters: CharacterForm, device: torch.device
    ) -> None:
        """characters: their form in the model's training text."""
        pairs = list(map(characters.pair, pairs[:_PAIRS]))
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        self._batch = collate(tokenizer.encode_source(sources), tokenizer.encode_target(targets)).to(device)

    def __call__(self, model: Seq2Seq) -> list[dict[str, Any]]:
        """Measure a model; return plain values for metrics.jsonl."""
        return [asdict(flow) for flow in gradient_flow(model, self._batch)]


def gradient_flow(model: Seq2Seq, batch: Batch) -> list[GradientFlow]:
    """Measure a model with dropout off; leave no gradients. batch: on the model's device.

    The derivative goes through everything that depends on a state: later states, upper layers, attention, the decoder.
    ConfigError for an architecture without a recurrence.
    """
    training = model.training
    model.eval()
    try:
        with torch.enable_grad():  # validation runs without gradients
            inspection = model.inspect(batch)
            if not inspection.recurrence:
                raise ConfigError(f"{type(model).__name__} has no recurrence along which a gradient could flow")
            # A sum over sentences: the gradient at a state is of its own sentence's loss, as sentences are independent.
            loss = torch.stack([part.sum() for part in token_nll(model, inspection.features, batch.targets)]).sum()
            states = [tensor for steps in inspection.recurrence.values() for state in steps for tensor in state]
            # A state that reaches no loss, as one of padding may, has a gradient of zeros.
            gradients = iter(torch.autograd.grad(loss, states, allow_unused=True, materialize_grads=True))
    finally:
        model.train(training)
    return [flow for layer, steps in inspection.recurrence.items() for flow in _flows(layer, steps, gradients, batch)]


def _flows(
    layer: str, steps: list[tuple[Tensor, ...]], gradients: Iterator[Tensor], batch: Batch
) -> Iterator[GradientFlow]:
    """Yield the flow of each part of the state. gradients: of all steps' parts, in their order."""
    norms = torch.stack([torch.stack([next(gradients).norm(dim=-1) for _ in state]) for state in steps]).cpu()
    lengths = batch.source_lengths.cpu()
    for part, part_norms in zip(_STATE_PARTS, norms.unbind(1), strict=False):  # (S, B)
        means, counts = [], []
        for distance in range(len(steps)):
            rows = (lengths > distance).nonzero().squeeze(1)
            if not len(rows):
                break
            # The recurrence ends at the last token, or, where it runs backward, at the first.
            times = torch.full_like(rows, distance) if layer.endswith("backward") else lengths[rows] - 1 - distance
            means.append(part_norms[times, rows].mean().item())
            counts.append(len(rows))
        yield GradientFlow(layer, part, means, counts)
