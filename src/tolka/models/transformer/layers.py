"""The layers of a Transformer's encoder and decoder (Vaswani et al. 2017, section 3.1, figure 1).

Shapes: N rows of targets, M rows of sources (see `tolka.kernels.packing`), D model width.
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from tolka.kernels.packing import Packing
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.attention import CrossAttention, SelfAttention
from tolka.nn.dropout import Dropout
from tolka.nn.feedforward import FeedForward
from tolka.nn.ssru import Ssru

# RMSNorm (Zhang and Sennrich 2019, equation 4): x / sqrt(mean(x^2) + eps) * gain, without centring or bias.
NORMALIZATIONS: dict[str, Callable[[int], nn.Module]] = {
    "layernorm": nn.LayerNorm,
    "rmsnorm": partial(nn.RMSNorm, eps=1e-6),
}


def make_norm(options: TransformerOptions) -> nn.Module:
    """Return a normalisation layer over the model width."""
    return NORMALIZATIONS[options.normalization](options.d_model)


def _self_attention(o: TransformerOptions) -> SelfAttention:
    return SelfAttention(o.d_model, o.heads, o.value_width, o.attention_dropout, rotary=o.positions == "rotary")


def _feedforward(o: TransformerOptions) -> FeedForward:
    return FeedForward(o.d_model, o.inner_width, o.activation, o.activation_dropout)


class Residual(nn.Module):
    """The residual connection around a sub-layer, with its dropout and normalisation.

    Post-norm, as in the paper: Norm(x + Dropout(f(x))). Pre-norm (Xiong et al. 2020): x + Dropout(f(Norm(x))).
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.pre_norm = options.norm == "pre"
        self.norm = make_norm(options)
        self.dropout = Dropout(options.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(..., D) -> (..., D)."""
        if self.pre_norm:
            # x passes through all layers unchanged, and so does the gradient: deep stacks train with little warm-up.
            return x + self.dropout(sublayer(self.norm(x)))
        # Every layer's output has variance 1, but the gradient has to pass through every norm.
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """One layer of the encoder: self-attention, then a feed-forward network."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.attention = _self_attention(options)
        self.around_attention = Residual(options)
        self.feedforward = _feedforward(options)
        self.around_feedforward = Residual(options)

    def forward(self, x: Tensor, rows: Packing, maps: list[Tensor] | None = None) -> Tensor:
        """(M, D) -> (M, D). maps: where given, gets the attention weights (B, H, S, S)."""
        # Every source token attends to all of its sentence, before and after it.
        x = self.around_attention(x, lambda y: self.attention(y, rows, causal=False, maps=maps))
        return self.around_feedforward(x, self.feedforward)


class DecoderLayer(nn.Module):
    """Causal self-attention or an SSRU, attention to the encoder, then feed-forward."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.is_recurrent = options.decoder == "ssru"
        if self.is_recurrent:
            self.ssru = Ssru(options.d_model)
        else:
            self.attention = _self_attention(options)
        self.around_attention = Residual(options)
        self.cross = CrossAttention(options.d_model, options.heads, options.value_width, options.attention_dropout)
        self.around_cross = Residual(options)
        self.feedforward = _feedforward(options)
        self.around_feedforward = Residual(options)

    def forward(
        self, x: Tensor, rows: Packing, encoded: Tensor, source: Packing, maps: list[Tensor] | None = None
    ) -> Tensor:
        """x (N, D), encoder states (M, D) -> (N, D), all positions at once.

        maps: where given, gets the weights of self-attention (B, H, T, T) and those of cross-attention (B, H, T, S).
        """
        # Causal: no position may see the token that it has to predict.
        read_prefix = self.ssru if self.is_recurrent else partial(self.attention, causal=True, maps=maps)
        x = self.around_attention(x, lambda y: read_prefix(y, rows))
        # Only here does the decoder see the source.
        x = self.around_cross(x, lambda y: self.cross(y, rows, encoded, source, maps=maps))
        return self.around_feedforward(x, self.feedforward)
