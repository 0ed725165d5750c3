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
    # The sizes of table 3 of the paper, with pre-norm.
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
    # The architecture and the size of the students of Mozilla's and Bergamot's translators (Bogoychev et al. 2020).
    "transformer_student": TransformerConfig(
        d_model=256,
        heads=8,
        d_ff=1536,
        layers=6,
        decoder_layers=2,
        decoder="ssru",
        norm="post",
        positions="sinusoidal_marian",
        decoder_start="zero",
        output_bias=True,
    ),
}
"""The values of `model=`."""
