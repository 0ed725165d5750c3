"""The contract between an architecture and everything else: search, losses and the trainer see nothing more.

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
from tolka.nn.initialization import Uninitialised
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.options.parsing import build
from tolka.options.registry import Registry

_DROPPING = ("dropout", "layerdrop")
TRAINING_ONLY = (*_DROPPING, "initialization")
"""Ends of the option names that shape training alone: weights fit whatever these are."""


class DecoderState(ABC):
    """All that a decoder remembers between two steps; search re-orders it without knowing what it is."""

    @abstractmethod
    def select(self, rows: Tensor) -> Self:
        """Keep, expand, re-order or drop hypotheses.

        rows: (B', k') numbers b * k + j of the hypotheses to go on with, one line per sentence that stays; all
        numbers of one line belong to the same sentence, whose encoder-side tensors are kept once. Where all
        sentences stay, they stay in order. The state given is used up, as by a step: what stays in its place need not
        be copied.
        """


def remaining_sentences(rows: Tensor, beam: int, sentences: int) -> Tensor | None:
    """(B',) numbers of the sentences that stay, for `select` of what is kept once a sentence; None if all do.

    rows: as `DecoderState.select` gets them. beam: hypotheses a sentence so far. sentences: how many there are so far.
    """
    return None if len(rows) == sentences else rows[:, 0] // beam


@dataclass(frozen=True)
class Inspection:
    """What the unfused path saw. attention: name ("decoder.0.cross") -> weights (B, heads, T, S), rows sum to 1.

    encoder_states: per layer (B, S, D), part of the graph, so that gradients with respect to them can be asked for.
    recurrence: name ("encoder.0.forward") -> the state (h,) or (h, C) at every time step, (B, D) each, part of the
    graph: a gradient with respect to one goes through all later ones.
    """

    features: Tensor
    attention: dict[str, Tensor] = field(default_factory=dict)
    encoder_states: list[Tensor] = field(default_factory=list)
    recurrence: dict[str, list[tuple[Tensor, ...]]] = field(default_factory=dict)


class Seq2Seq(nn.Module, ABC):
    """An encoder-decoder."""

    vocabulary_size: int
    """V, the number of target pieces."""
    feature_size: int
    """D, the width of the features."""
    recompute: bool = False
    """Whether training keeps of each layer its input alone (Chen et al. 2016), where an architecture can."""

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Teacher forcing: the features (N, D) of the valid target tokens, row by row, padding left out."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """(..., D) -> (..., V), unnormalised log-probabilities.

        The loss overwrites the result: its last operation must not need its own output for the backward pass.
        """

    def quantize_output(self) -> None:
        """Convert to int8, for decoding only, what `logits` reads beside linear layers: nothing, unless overridden."""

    def compile_layers(self, mode: str | None = None, backend: str = "inductor") -> None:
        """Compile each layer with torch.compile, for training; ConfigError for an architecture without such layers.

        mode, backend: torch.compile's.
        """
        raise ConfigError(f"{type(self).__name__} has no layers to compile")

    @abstractmethod
    def logits_parameters(self) -> list[nn.Parameter]:
        """Every parameter that `logits` reads."""

    @abstractmethod
    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """Encode once. source (B, S) padded ids, lengths (B,) -> the state before the first step, k = 1."""

    @abstractmethod
    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k): the last token of each hypothesis -> features (B, k, D) of the next one, and the new state.

        The state given is used up: what it holds may go on in the new one.
        """

    def inspect(self, batch: Batch) -> Inspection:
        """The unfused path, with what there is to look at; ConfigError for an architecture that has nothing."""
        raise ConfigError(f"{type(self).__name__} has no attention maps or encoder states to inspect")

    def parameter_count(self) -> int:
        """Numbers in its weights, each shared one counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


MOST_WIDE, MOST_LAYERS = 2**20, 1000  # far beyond any machine: so that a slip of the hand is no endless loop
_MOST_PARAMETERS = 10**12


@dataclass(frozen=True)
class ModelConfig(ABC):
    """Options of one architecture; knows how to build it."""

    d_model: int = 256
    """width of embeddings, and of whatever follows it"""
    parameters: int = 0
    """about how many parameters: d_model is chosen for it, so that unlike models compare; 0 = d_model as it is"""

    def __post_init__(self) -> None:
        at_least(self, "model", 1, "d_model")
        at_most(self, "model", MOST_WIDE, "d_model")
        zero_or_more(self, "model", "d_model as it is", "parameters")
        at_most(self, "model", _MOST_PARAMETERS, "parameters")

    @property
    def stochastic(self) -> bool:
        """Whether two passes in training mode differ: some kind of dropout is on."""
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

    def spelt_out(self, shared: bool) -> Self:
        """The same with what follows other options, or the vocabulary, in numbers and words of its own.

        shared: as in `build`. Models of like shape are alike once spelt out. ConfigError as `build`.
        """
        return replace(self, parameters=0)

    @property
    def longest(self) -> int | None:
        """Tokens of a sentence, </s> included, whose positions the model tells apart; None = however many."""
        return None

    @property
    def width_step(self) -> int:
        """What d_model must be a multiple of when it is chosen for a number of parameters."""
        return 8

    def sized(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> Self:
        """The same with the d_model whose number of parameters is nearest to `parameters`; itself where that is 0."""
        if not self.parameters:
            return self

        def made(steps: int) -> tuple[int, Self]:
            config = replace(self, d_model=steps * self.width_step)
            with torch.device("meta"), Uninitialised():  # shapes, and no numbers
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
        """A freshly initialised model. shared: whether source and target ids mean the same pieces."""


MODELS: Registry[ModelConfig] = Registry("model", "tolka.models")


def spelt_out_options(options: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """A saved model's options, as `ModelConfig.spelt_out` has them; ConfigError where they make no model."""
    return asdict(build(MODELS.get(str(options.get("name"))), options, "model").spelt_out(shared))
