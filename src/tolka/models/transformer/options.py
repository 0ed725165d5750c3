"""Options of a Transformer, and the sizes derived from them."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from tolka.errors import ConfigError
from tolka.models.options import INITIALIZATIONS, MAX_LAYERS, MAX_WIDTH, SHARING, ModelConfig, resolved_sharing
from tolka.options.checks import at_least, at_most, one_of, share_below_one, zero_or_more
from tolka.options.settings import setting

_NORMS = ("post", "pre")
_NORMALIZATIONS = ("layernorm", "rmsnorm")
_ACTIVATIONS = ("relu", "gelu", "swish", "swiglu")
_DECODERS = ("attention", "ssru")
_STARTS = ("bos", "eos", "zero")
_POSITIONS = ("sinusoidal", "sinusoidal_halves", "sinusoidal_marian", "sinusoidal_fairseq", "learned", "rotary")


@dataclass(frozen=True)
class TransformerOptions(ModelConfig):
    """Options of all Transformers; the defaults are the size called small."""

    SUPPORTS_RECOMPUTE: ClassVar[bool] = True
    heads: int = 4
    """attention heads; must divide d_model"""
    d_v: int = setting(0, listed=False)
    """width of one head's values; 0 = d_model / heads, like its keys"""
    d_ff: int = 0
    """inner feed-forward width; 0 = 4 * d_model (swiglu: 8/3 * d_model up to a multiple of 8, so as many weights)"""
    layers: int = 3
    """encoder layers, and decoder layers unless decoder_layers is set"""
    decoder_layers: int = 0
    """decoder layers; 0 = as many as the encoder"""
    decoder: str = "attention"
    """what reads the target's prefix: self-attention, or ssru, a recurrence that is faster (Kim et al. 2019)"""
    norm: str = "pre"
    """where the norm is applied around a sub-layer f: post = N(x + f(x)) as in the paper, pre = x + f(N(x))"""
    normalization: str = "layernorm"
    """which one: layernorm, or rmsnorm, which neither centres nor has a bias (Zhang and Sennrich 2019)"""
    activation: str = "relu"
    """of the feed-forward sub-layer: relu, gelu, swish = x * sigmoid(x), or swiglu = swish(x W) * x V (Shazeer 2020)"""
    positions: str = "sinusoidal"
    """sinusoidal, sinusoidal_marian, sinusoidal_halves (Hugging Face's Marian), sinusoidal_fairseq, rotary, learned"""
    max_positions: int = setting(512, listed=False)
    """how many learned positions there are; later ones share the last"""
    share_embeddings: str = "auto"
    """which have one matrix: all, source_target, target_output, source_output, none; auto = as many as possible"""
    decoder_start: str = "bos"
    """what the decoder reads first: bos = <s>, eos = </s>, as in M2M-100, or zero = a vector of zeros, as in Marian"""
    scale_embeddings: bool = setting(True, listed=False)
    """multiply embeddings by sqrt(d_model) before positions are added, as in the paper"""
    output_bias: bool = False
    """add a trained bias to the output layer's logits, one for each subword"""
    initialization: str = "xavier"
    """of weight matrices, uniform: xavier, or kaiming (He et al. 2015)"""
    dropout: float = 0.1
    """on each sub-layer's output, and on the sum of embedding and position"""
    attention_dropout: float = 0.0
    """on the attention weights"""
    activation_dropout: float = 0.0
    """inside the feed-forward sub-layer"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "model", 1, "heads", "layers", "max_positions")
        zero_or_more(self, "model", "follow the others", "d_v", "d_ff", "decoder_layers")
        at_most(self, "model", MAX_LAYERS, "layers", "decoder_layers")
        at_most(self, "model", 16 * MAX_WIDTH, "d_v", "d_ff", "max_positions")
        if self.d_model % self.heads:
            raise ConfigError(f"model.d_model ({self.d_model}) must be a multiple of model.heads ({self.heads})")
        share_below_one(self, "model", "dropout", "attention_dropout", "activation_dropout")
        one_of(self, "model", "decoder", _DECODERS)
        one_of(self, "model", "norm", _NORMS)
        one_of(self, "model", "normalization", _NORMALIZATIONS)
        one_of(self, "model", "positions", _POSITIONS)
        one_of(self, "model", "decoder_start", _STARTS)
        if self.positions in ("sinusoidal_marian", "sinusoidal_fairseq") and self.d_model < 4:
            raise ConfigError(f"model.positions={self.positions} needs model.d_model ({self.d_model}) of at least 4")
        one_of(self, "model", "share_embeddings", SHARING)
        one_of(self, "model", "activation", _ACTIVATIONS)
        one_of(self, "model", "initialization", INITIALIZATIONS)
        if self.positions == "rotary" and self.key_width % 2:
            raise ConfigError(
                f"model.positions=rotary rotates pairs of values: model.d_model / model.heads ({self.d_model} / "
                f"{self.heads} = {self.key_width}) must be even"
            )

    def resolved(self, shared: bool) -> Self:
        return replace(
            super().resolved(shared),
            d_v=self.value_width,
            d_ff=self.inner_width,
            decoder_layers=self.decoder_layers or self.layers,
            share_embeddings=resolved_sharing(self.share_embeddings, shared),
        )

    @property
    def width_step(self) -> int:
        """A multiple of 2 per head, which rotary positions need."""
        return math.lcm(8, 2 * self.heads)

    @property
    def embedding_scale(self) -> float:
        """What embeddings are multiplied by before positions are added."""
        return math.sqrt(self.d_model) if self.scale_embeddings else 1.0

    @property
    def key_width(self) -> int:
        """Width of one head's queries and keys, d_k."""
        return self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """Width of one head's values."""
        return self.d_v or self.key_width

    @property
    def inner_width(self) -> int:
        """Inner width of the feed-forward sub-layer."""
        # swiglu has a third matrix: three of width 8/3 D have as many weights as two of width 4 D (Shazeer 2020).
        return self.d_ff or (8 * -(-self.d_model // 3) if self.activation == "swiglu" else 4 * self.d_model)
