"""What search, losses and the trainer know about a model: `Seq2Seq`, and the `DecoderState` of its decoder.

Shapes: B sentences, k hypotheses a sentence, S source, T target, N valid target tokens, D width, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.errors import ConfigError


class DecoderState(ABC):
    """All that a decoder keeps between two steps; search re-orders it without knowing what it contains."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Return the state of the selected hypotheses: kept, expanded, re-ordered or dropped.

        rows: (B', k') numbers b * k + j of the hypotheses to continue, one line per active sentence; all numbers of one
        line belong to the same sentence. If all sentences remain, they are in order. This state must not be used again.
        """


def remaining_sentences(rows: Tensor, beam: int, sentences: int) -> Tensor | None:
    """Return the numbers (B',) of the sentences that remain, to select encoder-side tensors; None if all do.

    rows: as for `DecoderState.select`. beam: hypotheses per sentence before. sentences: how many there were before.
    """
    # A line's numbers belong to one sentence b, so that the first one tells it: (b * k + j) // k.
    return None if len(rows) == sentences else rows[:, 0] // beam


@dataclass(frozen=True)
class Inspection:
    """Intermediate results of a forward pass through unfused attention."""

    features: Tensor
    # Name ("decoder.0.cross") -> weights (B, heads, T, S); rows sum to 1.
    attention: dict[str, Tensor] = field(default_factory=dict)


class Seq2Seq(nn.Module, ABC):
    """Base class of all architectures: an encoder of the source and a decoder of the target."""

    vocabulary_size: int
    """V, the number of target subwords."""
    feature_size: int
    """D, the width of the features."""
    without_text: Tensor | None = None
    """Target ids beside `<pad>` and `<s>` that no search may choose, as those of tags."""
    trains_in_half: bool = False
    """Whether a GPU may train it with all weights in half precision; else autocast decides, operation by operation."""
    recompute: bool = False
    """Whether training stores only each layer's input (Chen et al. 2016), if the architecture supports it."""

    @property
    def architecture(self) -> str:
        """Name for people; the class's, unless overridden."""
        return type(self).__name__

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Return the features (N, D) of the valid target tokens, row by row, with teacher forcing."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """(..., D) -> (..., V), unnormalised log-probabilities.

        The loss overwrites the result: its last operation must not need its own output for the backward pass.
        """

    def layers(self) -> Sequence[nn.Module]:
        """Return the modules that compute most of `forward`, one after the other; they share no weight."""
        return []

    @abstractmethod
    def logits_parameters(self) -> list[nn.Parameter]:
        """Return every parameter that `logits` reads."""

    @abstractmethod
    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """Encode source (B, S), padded, with lengths (B,); return the state before the first step, k = 1."""

    @abstractmethod
    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k), the last one of each hypothesis -> features (B, k, D) of the next one, and the new state.

        The state given must not be used again: the new one may share its memory.
        """

    def inspect(self, batch: Batch) -> Inspection:
        """Run a forward pass that returns its intermediate results; ConfigError if there are none to show."""
        raise ConfigError(f"{type(self).__name__} has no attention maps to inspect")

    def parameter_count(self) -> int:
        """Return the number of parameters, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())
