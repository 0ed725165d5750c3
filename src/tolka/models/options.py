"""Options that every architecture has, and the registry of architectures; needs no torch."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tolka.errors import ConfigError
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.options.parsing import build
from tolka.options.registry import Registry

if TYPE_CHECKING:
    from tolka.models.seq2seq import Seq2Seq

TRAINING_ONLY = ("dropout", "initialization")
"""Suffixes of the options that affect training only: weights fit whatever these are."""
SHARING = ("auto", "all", "source_target", "target_output", "source_output", "none")
"""Values of `share_embeddings`."""
INITIALIZATIONS = ("xavier", "kaiming")
"""Values of `initialization`."""
# Far beyond any machine, so that a typing error does not loop endlessly.
MAX_WIDTH, MAX_LAYERS = 2**20, 1000
_MOST_PARAMETERS = 10**12


@dataclass(frozen=True)
class ModelConfig(ABC):
    """Options of one architecture, and how to build it."""

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

    def resolved(self, shared: bool) -> Self:
        """Return the config with every value explicit that is derived from other options or from the vocabulary.

        shared: as in `build`. Models of the same shape have equal resolved configs. ConfigError as in `build`.
        """
        return replace(self, parameters=0)

    @property
    def architecture(self) -> str:
        """A phrase for reports, without a comma; "" where the registered name says enough."""
        return ""

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
            return config.shapes(source_vocabulary, target_vocabulary, shared).parameter_count(), config

        # The count rises with d_model: double d_model until it is too large, then halve the interval.
        low, high = 1, 2
        while candidate(high)[0] < self.parameters:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if candidate(middle)[0] < self.parameters else (low, middle)
        return min(candidate(low), candidate(high), key=lambda c: abs(c[0] - self.parameters))[1]

    def shapes(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Seq2Seq":
        """Return the model of `build` on the meta device: its tensors have shapes and no memory."""
        import torch

        from tolka.nn.initialization import SkipInitialization

        with torch.device("meta"), SkipInitialization():
            return self.build(source_vocabulary, target_vocabulary, shared)

    @abstractmethod
    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Seq2Seq":
        """Return a freshly initialised model. shared: whether source and target have one vocabulary."""


# Without the modules that register nothing: they import torch, which options do without.
MODELS: Registry[ModelConfig] = Registry(
    "model", "tolka.models", without=("base", "embeddings", "ensemble", "new_rows", "tagged", "quantization", "seq2seq")
)


def resolved_sharing(sharing: str, shared: bool) -> str:
    """Return `sharing` with auto resolved. shared: whether source and target have one vocabulary.

    ConfigError when two vocabularies are to share a matrix.
    """
    if sharing == "auto":
        return "all" if shared else "target_output"
    if not shared and sharing not in ("target_output", "none"):
        raise ConfigError(
            f"model.share_embeddings={sharing} needs one vocabulary: set tokenizer.shared=true, or target_output"
        )
    return sharing


def resolved_options(options: Mapping[str, Any], shared: bool) -> ModelConfig:
    """Return a saved model's options, resolved; ConfigError if they are not valid."""
    return build(MODELS.get(str(options.get("name"))), options, "model").resolved(shared)
