"""The recurrent models as a registered architecture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tolka.models.options import MODELS
from tolka.models.rnn.options import RnnOptions

if TYPE_CHECKING:
    from tolka.models.rnn.decoding import DecodingRnn


@MODELS.register("rnn")
@dataclass(frozen=True)
class RnnConfig(RnnOptions):
    """Options of a recurrent model; the defaults are an LSTM without attention."""

    name: str = "rnn"
    """the architecture: rnn"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "DecodingRnn":
        """Return a freshly initialised model; ConfigError when two vocabularies are to share a matrix."""
        from tolka.models.rnn.decoding import DecodingRnn

        return DecodingRnn(self.resolved(shared), source_vocabulary, target_vocabulary)


PRESETS = {
    "rnn": RnnConfig(cell="rnn"),
    "lstm": RnnConfig(cell="lstm"),
    "gru": RnnConfig(cell="gru"),
    "rnn_attention": RnnConfig(cell="rnn", attention="general"),
    "lstm_attention": RnnConfig(cell="lstm", attention="general"),
    "gru_attention": RnnConfig(cell="gru", attention="general"),
    "bilstm_deep": RnnConfig(cell="lstm", layers=2, bidirectional=True),
    "bilstm_attention": RnnConfig(cell="lstm", bidirectional=True, attention="additive"),
    "bilstm_deep_attention": RnnConfig(
        cell="lstm", layers=2, bidirectional=True, attention="general", input_feeding=True, token_term=True
    ),
}
"""The values of `model=`."""

VARIANTS = {
    "rnn": RnnConfig(cell="rnn", d_model=32),
    "lstm": RnnConfig(d_model=32),
    "gru": RnnConfig(cell="gru", d_model=32),
    "rnn deep bidirectional": RnnConfig(cell="rnn", d_model=24, hidden=32, layers=2, bidirectional=True),
    "lstm deep bidirectional": RnnConfig(d_model=32, layers=2, bidirectional=True, share_embeddings="none"),
    "gru deep bidirectional": RnnConfig(cell="gru", d_model=32, layers=2, bidirectional=True),
    "rnn additive": RnnConfig(cell="rnn", d_model=32, attention="additive"),
    "lstm dot": RnnConfig(d_model=32, attention="dot", bidirectional=True),
    "lstm general fed": RnnConfig(d_model=32, layers=2, attention="general", input_feeding=True),
    "gru general": RnnConfig(cell="gru", d_model=32, attention="general", token_term=True),
    "gru additive fed": RnnConfig(cell="gru", d_model=24, hidden=40, attention="additive", input_feeding=True),
}
"""Small models for tests."""
