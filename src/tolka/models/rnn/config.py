"""The recurrent models as a registered architecture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tolka.models.options import MODELS
from tolka.models.rnn.options import RnnOptions

if TYPE_CHECKING:
    from tolka.models.rnn.model import RecurrentSeq2Seq


@MODELS.register("rnn")
@dataclass(frozen=True)
class RnnConfig(RnnOptions):
    """Options of a recurrent model; the defaults are an LSTM without attention."""

    name: str = "rnn"
    """the architecture: rnn"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "RecurrentSeq2Seq":
        """Return a freshly initialised model; ConfigError when two vocabularies are to share a matrix."""
        from tolka.models.rnn.model import RecurrentSeq2Seq

        return RecurrentSeq2Seq(self.resolved(shared), source_vocabulary, target_vocabulary)


PRESETS = {
    # Without attention (Sutskever et al. 2014) all that the decoder knows of a sentence is the encoder's last state.
    "rnn": RnnConfig(cell="rnn"),
    "lstm": RnnConfig(cell="lstm"),
    "gru": RnnConfig(cell="gru"),
    # With the general score of Luong et al. (2015).
    "rnn_attention": RnnConfig(cell="rnn", attention="general"),
    "lstm_attention": RnnConfig(cell="lstm", attention="general"),
    "gru_attention": RnnConfig(cell="gru", attention="general"),
    "bilstm_deep": RnnConfig(cell="lstm", layers=2, bidirectional=True),
    # The encoder and the score of Bahdanau et al. (2015), whose cell is a GRU.
    "bilstm_attention": RnnConfig(cell="lstm", bidirectional=True, attention="additive"),
    "bilstm_deep_attention": RnnConfig(
        cell="lstm", layers=2, bidirectional=True, attention="general", input_feeding=True, token_term=True
    ),
}
"""The values of `model=`."""
