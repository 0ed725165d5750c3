"""Options of the recurrent encoder-decoders."""

from dataclasses import dataclass, replace
from typing import Self

from tolka.errors import ConfigError
from tolka.models.options import INITIALIZATIONS, MAX_LAYERS, MAX_WIDTH, SHARING, ModelConfig, resolved_sharing
from tolka.options.checks import at_least, at_most, one_of, share_below_one, zero_or_more

OWN_CELLS = ("rnn", "lstm", "gru")
"""The cells of tolka itself; a plugin may have others."""
_SCORES = ("dot", "general", "additive")


@dataclass(frozen=True)
class RnnOptions(ModelConfig):
    """Options of all recurrent models; the defaults are an LSTM without attention."""

    cell: str = "lstm"
    """rnn (Elman 1990), lstm (Hochreiter and Schmidhuber 1997) or gru (Cho et al. 2014)"""
    hidden: int = 0
    """width of states, both directions of an encoder together; 0 = d_model"""
    layers: int = 1
    """recurrent layers of the encoder, and of the decoder"""
    bidirectional: bool = False
    """whether the encoder reads backwards too, half of `hidden` for each direction"""
    attention: str = "none"
    """none, dot = <s, h>, general = s W h (Luong et al. 2015), additive = v tanh(W s + U h) (Bahdanau et al. 2015)"""
    input_feeding: bool = False
    """whether the attentional features of a step are input to the next one (Luong et al. 2015, section 3.3)"""
    token_term: bool = False
    """whether the output layer sees the previous token's embedding too: y_t = s_t W + c_t W' + x_t W''"""
    share_embeddings: str = "auto"
    """which have one matrix: all, source_target, target_output, source_output, none; auto = as many as possible"""
    initialization: str = "xavier"
    """of weight matrices, uniform: xavier, or kaiming (He et al. 2015)"""
    dropout: float = 0.1
    """on embeddings, between layers and before the output layer, not inside a recurrence (Zaremba et al. 2014)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "model", 1, "layers")
        at_most(self, "model", MAX_LAYERS, "layers")
        zero_or_more(self, "model", "as d_model", "hidden")
        at_most(self, "model", MAX_WIDTH, "hidden")
        # A plugin's cell, or an unknown one: only then is torch imported.
        if self.cell not in OWN_CELLS:
            from tolka.nn.rnn_cells import CELLS

            one_of(self, "model", "cell", CELLS)
        one_of(self, "model", "attention", ("none", *_SCORES))
        one_of(self, "model", "share_embeddings", SHARING)
        one_of(self, "model", "initialization", INITIALIZATIONS)
        share_below_one(self, "model", "dropout")
        if self.bidirectional and self.width % 2:
            raise ConfigError(
                f"model.bidirectional=true gives each direction half of the states' width ({self.width}), which must "
                "be even: change model.hidden (or model.d_model, which it follows)"
            )
        if self.input_feeding and self.attention == "none":
            raise ConfigError(
                "model.input_feeding=true hands on what attention found, and there is none: set model.attention to "
                f"{', '.join(_SCORES)}, or leave it out"
            )

    @property
    def architecture(self) -> str:
        attention = "no attention" if self.attention == "none" else f"{self.attention} attention"
        return f"{'bidirectional ' if self.bidirectional else ''}{self.cell.upper()} with {attention}"

    @property
    def width(self) -> int:
        """D, the width of states."""
        return self.hidden or self.d_model

    def resolved(self, shared: bool) -> Self:
        sharing = resolved_sharing(self.share_embeddings, shared)
        return replace(super().resolved(shared), hidden=self.width, share_embeddings=sharing)
