"""The contract of architectures: all that search, losses and the trainer use.

Shapes: B sentences, k hypotheses a sentence, S source, T target, N valid target tokens, D width, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.errors import ConfigError
from tolka.nn.initialization import SkipInitialization
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.options.parsing import build
from tolka.options.registry import Registry

_DROPPING = ("dropout", "layerdrop")
TRAINING_ONLY = (*_DROPPING, "initialization")
"""Ends of the option names that shape training alone: weights fit whatever these are."""


class DecoderState(ABC):
    """What a decoder carries from one step to the next; search re-orders it without knowing its content."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Return the state of the selected hypotheses: kept, copied, re-ordered or dropped.

        rows: (B', k') numbers b * k + j of hypotheses, one line per remaining sentence; all numbers of one line belong
        to the same sentence, whose encoder-side tensors are stored once. If all sentences remain, they stay in order.
        The state it is called on must not be used again.
        """


def remaining_sentences(rows: Tensor, beam: int, sentences: int) -> Tensor | None:
    """Return the numbers (B',) of the sentences that remain, for `select` of per-sentence tensors; None if all do.

    rows: as `DecoderState.select` gets them. beam: hypotheses a sentence so far. sentences: how many there are so far.
    """
    return None if len(rows) == sentences else rows[:, 0] // beam


@dataclass(frozen=True)
class Inspection:
    """What `inspect` returns. attention: name ("decoder.0.cross") -> weights (B, heads, T, S), whose rows sum to 1.

    encoder_states: per layer (B, S, D), part of the graph, for gradients with respect to them. recurrence: name
    ("encoder.0.forward") -> the state (h,) or (h, C) at every time step, (B, D) each, part of the graph: a gradient
    with respect to one goes through all later ones.
    """

    features: Tensor
    attention: dict[str, Tensor] = field(default_factory=dict)
    encoder_states: list[Tensor] = field(default_factory=list)
    recurrence: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)


class Seq2Seq(nn.Module, ABC):
    """An encoder-decoder."""

    vocabulary_size: int
    """V, the size of the target vocabulary."""
    feature_size: int
    """D, the width of the features."""
    recompute: bool = False
    """Whether training keeps of each layer its input alone (Chen et al. 2016), where an architecture can."""

    @property
    def architecture(self) -> str:
        """Name for people; the class's, unless overridden."""
        return type(self).__name__

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Compute, with teacher forcing, the features (N, D) of the valid target tokens, row by row."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """(..., D) -> (..., V), unnormalised log-probabilities.

        The loss overwrites the result: its last operation must not need its own output for the backward pass.
        """

    def quantize_output(self) -> None:
        """Convert to int8, for decoding only, what `logits` reads, unless it is a linear layer; by default nothing."""

    def compile_layers(self, mode: str | None = None, backend: str = "inductor") -> None:
        """Compile each layer with torch.compile, for training; ConfigError for an architecture that cannot.

        mode, backend: torch.compile's.
        """
        raise ConfigError(f"{self.architecture} has no layers to compile")

    @abstractmethod
    def logits_parameters(self) -> list[nn.Parameter]:
        """Return every parameter that `logits` reads."""

    @abstractmethod
    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """Encode source (B, S), padded ids with lengths (B,); return the state before the first step, k = 1."""

    @abstractmethod
    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k), the last one of each hypothesis -> features (B, k, D) of the next one, and the new state.

        The state given must not be used again.
        """

    def inspect(self, batch: Batch) -> Inspection:
        """Compute features with attention maps and encoder states; ConfigError for an architecture without any."""
        raise ConfigError(f"{self.architecture} has no attention maps or encoder states to inspect")

    def parameter_count(self) -> int:
        """Return the number of parameters, each shared one counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


MOST_WIDE, MOST_LAYERS = 2**20, 1000  # far beyond any machine: so that a slip of the hand is no endless loop
_MOST_PARAMETERS = 10**12


@dataclass(frozen=True)
class ModelConfig(ABC):
    """Options of one architecture, which can build it."""

    d_model: int = 256
    """width of embeddings, and of whatever follows it"""
    parameters: int = 0
    """about how many parameters: d_model is chosen for it, so that different models compare; 0 = d_model as it is"""

    def __post_init__(self) -> None:
        at_least(self, "model", 1, "d_model")
        at_most(self, "model", MOST_WIDE, "d_model")
        zero_or_more(self, "model", "d_model as it is", "parameters")
        at_most(self, "model", _MOST_PARAMETERS, "parameters")

    @property
    def stochastic(self) -> bool:
        """Whether two passes in training mode differ, because some kind of dropout is on."""
        rates = [value for key, value in vars(self).items() if key.endswith(_DROPPING)]
        return any(rate > 0 for rate in rates)

    @property
    def supports_gradient_flow(self) -> bool:
        """Whether the encoder is recurrent, so that `inspect` shows its states in `recurrence`."""
        return False

    @property
    def supports_compile(self) -> bool:
        """Whether `compile_layers` does something."""
        return False

    @property
    def supports_recompute(self) -> bool:
        """Whether `recompute` does something."""
        return False

    def resolved(self, shared: bool) -> Self:
        """Return the options with those that follow from others, or from the vocabulary, resolved.

        shared: as in `build`. Models of equal shape have equal resolved options. ConfigError as `build`.
        """
        return replace(self, parameters=0)

    @property
    def longest(self) -> int | None:
        """Number of positions that the model distinguishes, `</s>` included; None if unlimited."""
        return None

    @property
    def width_step(self) -> int:
        """What d_model must be a multiple of when it is chosen for a number of parameters."""
        return 8

    def sized(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Self:
        """Return the options with the d_model whose parameter count is nearest to `parameters`; itself if that is 0."""
        if not self.parameters:
            return self

        def made(steps: int) -> tuple[int, Self]:
            config = replace(self, d_model=steps * self.width_step)
            with torch.device("meta"), SkipInitialization():  # shapes, and no numbers
                return config.build(source_vocabulary, target_vocabulary, shared).parameter_count(), config

        low, high = 1, 2
        while made(high)[0] < self.parameters:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if made(middle)[0] < self.parameters else (low, middle)
        return min(made(low), made(high), key=lambda found: abs(found[0] - self.parameters))[1]

    @abstractmethod
    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Seq2Seq:
        """Return a freshly initialised model. shared: whether source and target ids mean the same subwords."""


MODELS: Registry[ModelConfig] = Registry("model", "tolka.models")


def resolved_options(options: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """Return a saved model's options, resolved; ConfigError for invalid ones."""
    return asdict(build(MODELS.get(str(options.get("name"))), options, "model").resolved(shared))
