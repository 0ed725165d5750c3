"""A model that mt-train chooses from the training text; another one takes its place before anything is built."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tolka.errors import ConfigError
from tolka.models.options import MAX_LAYERS, MAX_WIDTH, MODELS, ModelConfig
from tolka.options.checks import at_most, one_of, share_below_one, zero_or_more
from tolka.options.settings import setting

if TYPE_CHECKING:
    from tolka.models.seq2seq import Seq2Seq

FAMILIES = ("any", "transformer", "rnn")
DESTINATIONS = ("html", "ctranslate2", "marian", "huggingface")  # of mt-train export


@MODELS.register("auto")
@dataclass(frozen=True)
class AutoOptions(ModelConfig):
    """What is known of the model before the text is read; `tolka.auto.rules` has what is chosen."""

    name: str = "auto"
    """the kind of model: auto, one that suits the training text and the machine"""
    family: str = "any"
    """any, transformer (which other programs can use too), or rnn"""
    leaves_to: str = "html"
    """where the model shall be exported to: html, as all can, ctranslate2, marian or huggingface"""
    d_model: int = 0
    """width; 0 = chosen"""
    layers: int = 0
    """layers of the encoder, and of the decoder; 0 = chosen"""
    decoder_layers: int = 0
    """layers of a Transformer's decoder; 0 = as many as the encoder"""
    dropout: float | None = None
    """probability of dropout; null = chosen"""
    parameters: int = setting(0, listed=False)

    def __post_init__(self) -> None:
        one_of(self, "model", "family", FAMILIES)
        one_of(self, "model", "leaves_to", DESTINATIONS)
        if self.family == "rnn" and self.leaves_to != "html":
            advice = "leave model.family=rnn out, or distil one afterwards (recipe=distillation)"
            raise ConfigError(f"model.leaves_to={self.leaves_to} needs a Transformer: {advice}")
        zero_or_more(self, "model", "chosen", "d_model", "layers", "decoder_layers", "parameters")
        at_most(self, "model", MAX_WIDTH, "d_model")
        at_most(self, "model", MAX_LAYERS, "layers", "decoder_layers")
        if self.decoder_layers and self.family != "transformer":
            raise ConfigError("model.decoder_layers is of Transformers alone: set model.family=transformer as well")
        if self.dropout is not None:
            share_below_one(self, "model", "dropout")

    def resolved(self, shared: bool) -> Self:
        """Return itself: there is nothing to derive yet."""
        return self

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Seq2Seq":
        """Raise ConfigError: only mt-train reads a text that a model can be chosen from."""
        raise ConfigError("model=auto is chosen from a training text by mt-train: name a model here")
