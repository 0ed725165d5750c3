"""The contract of an architecture: all that search, losses and the trainer know about a model.

Shapes: B sentences, k hypotheses a sentence, S source, T target, N valid target tokens, D width, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.errors import ConfigError
from tolka.nn.initialization import SkipInitialization
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.options.parsing import build
from tolka.options.registry import Registry

TRAINING_ONLY = ("dropout", "initialization")
"""Suffixes of the options that affect training only: weights fit whatever these are."""


class DecoderState(ABC):
    """All that a decoder keeps between two steps; search re-orders it without knowing what it contains."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Return the state of the selected hypotheses: kept, expanded, re-ordered or dropped.

        rows: (B', k') numbers b * k + j of the hypotheses to continue, one line per active sentence; all numbers of one
        line belong to the same sentence, whose encoder-side tensors are stored once. If all sentences remain, they are
        in order. This state must not be used again: rows that keep their place need not be copied.
        """


def remaining_sentences(rows: Tensor, beam: int, sentences: int) -> Tensor | None:
    """Return the numbers (B',) of the sentences that remain, to select encoder-side tensors; None if all do.

    rows: as for `DecoderState.select`. beam: hypotheses per sentence before. sentences: how many there were before.
    """
    return None if len(rows) == sentences else rows[:, 0] // beam


@dataclass(frozen=True)
class Inspection:
    """Intermediate results of a forward pass through unfused attention and unrolled recurrences.

    attention: name ("decoder.0.cross") -> weights (B, heads, T, S), rows sum to 1. encoder_states: per layer (B, S, D),
    part of the graph, so that their gradients can be computed. recurrence: name ("encoder.0.forward") -> the state (h,)
    or (h, C) at every time step, (B, D) each, part of the graph: the gradient of one goes through all later ones.
    """

    features: Tensor
    attention: dict[str, Tensor] = field(default_factory=dict)
    encoder_states: list[Tensor] = field(default_factory=list)
    recurrence: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)


class Seq2Seq(nn.Module, ABC):
    """Base class of all architectures: an encoder of the source and a decoder of the target."""

    vocabulary_size: int
    """V, the number of target subwords."""
    feature_size: int
    """D, the width of the features."""
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

    def compile_layers(self, mode: str | None = None, backend: str = "inductor") -> None:
        """Compile each layer with torch.compile, for training; ConfigError if the architecture does not support it.

        mode, backend: as for torch.compile.
        """
        raise ConfigError(f"{self.architecture} has no layers to compile")

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
        raise ConfigError(f"{type(self).__name__} has no attention maps or encoder states to inspect")

    def parameter_count(self) -> int:
        """Return the number of parameters, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


MAX_WIDTH, MAX_LAYERS = 2**20, 1000  # far beyond any machine, so that a typing error does not loop endlessly
_MOST_PARAMETERS = 10**12


@dataclass(frozen=True)
class ModelConfig(ABC):
    """Options of one architecture, and how to build it."""

    SUPPORTS_GRADIENT_FLOW: ClassVar[bool] = False
    """Whether the encoder is recurrent, so that `inspect` shows its states in `recurrence`."""
    SUPPORTS_COMPILE: ClassVar[bool] = False
    """Whether this architecture has layers that `compile_layers` compiles."""
    SUPPORTS_RECOMPUTE: ClassVar[bool] = False
    """Whether this architecture can compute activations again instead of keeping them."""

    d_model: int = 256
    """width of embeddings, and of the layers unless set otherwise"""
    parameters: int = 0
    """target number of parameters: d_model is chosen for it, to compare architectures; 0 = d_model as set"""

    def __post_init__(self) -> None:
        at_least(self, "model", 1, "d_model")
        at_most(self, "model", MAX_WIDTH, "d_model")
        zero_or_more(self, "model", "d_model as it is", "parameters")
        at_most(self, "model", _MOST_PARAMETERS, "parameters")

    @property
    def stochastic(self) -> bool:
        """Whether two passes in training mode differ because some kind of dropout is on."""
        return any(value > 0 for key, value in vars(self).items() if key.endswith("dropout"))

    def resolved(self, shared: bool) -> Self:
        """Return the config with every value explicit that is derived from other options or from the vocabulary.

        shared: as in `build`. Models of the same shape have equal resolved configs. ConfigError as in `build`.
        """
        return replace(self, parameters=0)

    @property
    def longest(self) -> int | None:
        """Number of positions, </s> included, that the model can distinguish; None = unlimited."""
        return None

    @property
    def width_step(self) -> int:
        """The step of d_model when it is chosen for a number of parameters."""
        return 8

    def sized(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Self:
        """Return the config with the d_model whose parameter count is nearest to `parameters`; itself if that is 0."""
        if not self.parameters:
            return self

        def candidate(steps: int) -> tuple[int, Self]:
            config = replace(self, d_model=steps * self.width_step)
            with torch.device("meta"), SkipInitialization():  # shapes without memory
                return config.build(source_vocabulary, target_vocabulary, shared).parameter_count(), config

        low, high = 1, 2
        while candidate(high)[0] < self.parameters:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if candidate(middle)[0] < self.parameters else (low, middle)
        return min(candidate(low), candidate(high), key=lambda c: abs(c[0] - self.parameters))[1]

    @abstractmethod
    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Seq2Seq:
        """Return a freshly initialised model. shared: whether source and target have one vocabulary."""


MODELS: Registry[ModelConfig] = Registry("model", "tolka.models")


def resolved_options(options: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """Return a saved model's options, resolved; ConfigError if they are not valid."""
    return asdict(build(MODELS.get(str(options.get("name"))), options, "model").resolved(shared))
