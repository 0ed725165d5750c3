"""The layers of a Transformer's encoder and decoder, built from its options.

Shapes: B sentences, k hypotheses a sentence, N rows of a packing of targets, M of sources, D model width.
"""

from torch import Tensor, nn

from tolka.models.transformer.options import TransformerOptions
from tolka.nn.attention import CrossAttention, SelfAttention
from tolka.nn.cache import KeyValueCache
from tolka.nn.dropout import Dropout
from tolka.nn.feedforward import FeedForward
from tolka.nn.norms import NORMALIZATIONS
from tolka.nn.packing import Packing


def normalisation(options: TransformerOptions) -> nn.Module:
    """The norm around a sub-layer, or at a stack's end."""
    return NORMALIZATIONS[options.normalization](options.d_model)


def _self_attention(o: TransformerOptions) -> SelfAttention:
    """The self-attention of one layer, encoder or decoder."""
    return SelfAttention(o.d_model, o.heads, o.value_width, o.attention_dropout, rotary=o.positions == "rotary")


def _feedforward(o: TransformerOptions) -> FeedForward:
    """The feed-forward sub-layer of one layer, encoder or decoder."""
    return FeedForward(o.d_model, o.inner_width, o.activation, o.activation_dropout)


class Residual(nn.Module):
    """Residual connection, dropout and normalisation around a sub-layer."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.pre = options.norm == "pre"
        self.norm = normalisation(options)
        self.dropout = Dropout(options.dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer is given."""
        normed: Tensor = self.norm(x) if self.pre else x
        return normed

    def after(self, x: Tensor, result: Tensor) -> Tensor:
        """What goes on, from the sub-layer's result."""
        total: Tensor = x + self.dropout(result)
        return total if self.pre else self.norm(total)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.attention = _self_attention(options)
        self.around_attention = Residual(options)
        self.feedforward = _feedforward(options)
        self.around_feedforward = Residual(options)

    def forward(self, x: Tensor, rows: Packing, maps: list[Tensor] | None = None) -> Tensor:
        """(M, D) -> (M, D)."""
        x = self.around_attention.after(x, self.attention(self.around_attention.before(x), rows, False, maps))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder, feed-forward."""

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.attention = _self_attention(options)
        self.around_attention = Residual(options)
        self.cross = CrossAttention(options.d_model, options.heads, options.value_width, options.attention_dropout)
        self.around_cross = Residual(options)
        self.feedforward = _feedforward(options)
        self.around_feedforward = Residual(options)

    def forward(
        self, x: Tensor, rows: Packing, encoded: Tensor, source: Packing, maps: list[list[Tensor]] | None = None
    ) -> Tensor:
        """x (N, D), encoder states (M, D) -> (N, D), all positions at once."""
        self_maps, cross_maps = maps or (None, None)
        x = self.around_attention.after(x, self.attention(self.around_attention.before(x), rows, True, self_maps))
        x = self.around_cross.after(x, self.cross(self.around_cross.before(x), rows, encoded, source, cross_maps))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x)))

    def step(
        self, x: Tensor, cache: KeyValueCache, memory: tuple[Tensor, Tensor], padding: Tensor | None
    ) -> tuple[Tensor, KeyValueCache]:
        """One new position of each hypothesis: x (B, k, D) -> (B, k, D), and the longer cache."""
        sentences, beam, width = x.shape
        new, cache = self.attention.step(self.around_attention.before(x).view(sentences * beam, 1, width), cache)
        x = self.around_attention.after(x, new.view(sentences, beam, width))
        x = self.around_cross.after(x, self.cross.recall(self.around_cross.before(x), memory, padding))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x))), cache
