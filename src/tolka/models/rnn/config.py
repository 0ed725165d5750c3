"""The recurrent models as a registered architecture."""

from dataclasses import dataclass

from tolka.models.base import MODELS
from tolka.models.rnn.decoding import DecodingRnn
from tolka.models.rnn.options import RnnOptions


@MODELS.register("rnn")
@dataclass(frozen=True)
class RnnConfig(RnnOptions):
    """Options of a recurrent model; the defaults are an LSTM without attention."""

    name: str = "rnn"
    """the architecture: rnn"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> DecodingRnn:
        """Return a freshly initialised model; ConfigError when two vocabularies are to share a matrix."""
        return DecodingRnn(self.spelt_out(shared), source_vocabulary, target_vocabulary)
