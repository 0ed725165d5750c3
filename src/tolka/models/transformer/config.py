"""The Transformer as a registered architecture, with its named sizes."""

from dataclasses import dataclass

from tolka.models.base import MODELS
from tolka.models.transformer.decoding import DecodingTransformer
from tolka.models.transformer.options import TransformerOptions


@MODELS.register("transformer")
@dataclass(frozen=True)
class TransformerConfig(TransformerOptions):
    """Options of the Transformer."""

    name: str = "transformer"
    """the architecture: transformer"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> DecodingTransformer:
        """Return a freshly initialised model; ConfigError when two vocabularies are to share a matrix."""
        return DecodingTransformer(self.spelt_out(shared), source_vocabulary, target_vocabulary)
