"""The Transformer as a registered architecture, with its named sizes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tolka.models.options import MODELS
from tolka.models.transformer.options import TransformerOptions

if TYPE_CHECKING:
    from tolka.models.transformer.decoding import DecodingTransformer


@MODELS.register("transformer")
@dataclass(frozen=True)
class TransformerConfig(TransformerOptions):
    """Options of the Transformer."""

    name: str = "transformer"
    """the architecture: transformer"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "DecodingTransformer":
        """Return a freshly initialised model; ConfigError when two vocabularies are to share a matrix."""
        from tolka.models.transformer.decoding import DecodingTransformer

        return DecodingTransformer(self.resolved(shared), source_vocabulary, target_vocabulary)


PRESETS = {
    "transformer_tiny": TransformerConfig(d_model=128),
    "transformer_small": TransformerConfig(),
    "transformer_base": TransformerConfig(d_model=512, heads=8, layers=6),
    "transformer_big": TransformerConfig(d_model=1024, heads=16, layers=6, dropout=0.3),
    # The architecture and the size of OPUS-MT's models (Tiedemann and Thottingal 2020), which other programs load.
    "transformer_marian": TransformerConfig(
        d_model=512,
        heads=8,
        layers=6,
        norm="post",
        activation="swish",
        positions="sinusoidal_halves",
        output_bias=True,
    ),
}
"""The values of `model=`."""

VARIANTS = {
    "transformer": TransformerConfig(d_model=32, heads=4, layers=2),
    "transformer post-norm": TransformerConfig(d_model=32, heads=4, layers=2, norm="post"),
    "transformer learned positions": TransformerConfig(d_model=32, layers=1, positions="learned", max_positions=6),
    "transformer free d_v": TransformerConfig(d_model=32, layers=1, d_v=5, d_ff=48, activation="gelu"),
    "transformer shallow decoder": TransformerConfig(d_model=32, layers=2, decoder_layers=1, share_embeddings="none"),
    "transformer attention dropout": TransformerConfig(
        d_model=32, layers=1, attention_dropout=0.2, activation_dropout=0.2
    ),
    "transformer rotary": TransformerConfig(d_model=32, layers=2, positions="rotary"),
    "transformer rotary, odd d_v": TransformerConfig(d_model=32, heads=1, layers=1, d_v=5, positions="rotary"),
    "transformer rmsnorm": TransformerConfig(d_model=32, layers=1, normalization="rmsnorm"),
    "transformer rmsnorm post-norm": TransformerConfig(d_model=32, layers=1, normalization="rmsnorm", norm="post"),
    "transformer swiglu": TransformerConfig(d_model=32, layers=1, activation="swiglu"),
    "transformer marian": TransformerConfig(
        d_model=32, layers=2, norm="post", activation="swish", positions="sinusoidal_halves", output_bias=True
    ),
    "transformer unscaled embeddings": TransformerConfig(d_model=32, layers=1, scale_embeddings=False),
    "transformer kaiming": TransformerConfig(d_model=32, layers=1, initialization="kaiming"),
}
"""Small models for tests."""
