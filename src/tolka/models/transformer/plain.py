"""The Transformer (Vaswani et al. 2017) on one page, for reading; `model.py` computes the same function, faster.

Sentences are padded to a rectangle, attention is written out, and there is neither dropout nor a cache. The weights are
a trained model's, under the same names:

    plain = PlainTransformer(model.config, source_vocabulary, target_vocabulary)
    plain.load_state_dict(model.state_dict())

Shapes: B sentences, S source tokens, T target tokens, L tokens of either, H heads, D = d_model, V target vocabulary.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.models.embeddings import make_embeddings
from tolka.models.transformer.layers import make_norm
from tolka.models.transformer.options import TransformerOptions as Options
from tolka.nn.feedforward import ACTIVATIONS


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V (equation 1): (B, H, T, d_k), (B, H, S, d_k), (B, H, S, d_v) -> (B, H, T, d_v)."""
    # A dot product of d_k terms of variance 1 has variance d_k: unscaled, the softmax would saturate (footnote 4).
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (B, H, T, S)
    # mask: true where a query may attend; exp(-inf) = 0 elsewhere.
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1) @ value  # each row of weights sums to 1


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(same) (section 3.5): (L, D)."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    # Side by side, sine and cosine of one angle: a shift by k is a rotation of each pair, the same at every position.
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class Attention(nn.Module):
    """Multi-head attention (section 3.2.2), of a sequence to itself or, if `cross`, to the encoder's states."""

    def __init__(self, config: Options, cross: bool) -> None:
        super().__init__()
        keys, values = config.d_model, config.heads * config.value_width
        self.heads, self.cross, self.widths = config.heads, cross, [keys, keys, values]
        if cross:
            self.query, self.key_value = nn.Linear(config.d_model, keys), nn.Linear(config.d_model, keys + values)
        else:  # W_Q, W_K and W_V one below the other
            self.query_key_value = nn.Linear(config.d_model, keys + keys + values)
        self.output = nn.Linear(values, config.d_model)

    def forward(self, x: Tensor, mask: Tensor, encoded: Tensor | None = None) -> Tensor:
        """(B, T, D), if `cross` with (B, S, D) -> (B, T, D)."""
        if self.cross:
            projected = [self.query(x), *self.key_value(encoded).split(self.widths[1:], dim=-1)]
        else:
            projected = self.query_key_value(x).split(self.widths, dim=-1)
        # H heads, each D / H wide: (B, L, H * d) -> (B, H, L, d).
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in projected)
        return self.output(attend(query, key, value, mask).transpose(1, 2).flatten(2))  # side by side, through W_O


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2 (equation 2), at each position separately."""

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.inner_width)
        self.outer = nn.Linear(config.inner_width, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        return self.outer(self.activation(self.inner(x)))


class Residual(nn.Module):
    """A residual connection: N(x + f(x)) (section 3.1), or pre-norm, x + f(N(x)) (Xiong et al. 2020)."""

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.pre, self.norm = config.norm == "pre", make_norm(config)

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        # Either way a sub-layer computes what is added to x, so that the gradient has a path around it.
        return x + f(self.norm(x)) if self.pre else self.norm(x + f(x))


class Layer(nn.Module):
    """Figure 1: self-attention, in the decoder attention to the encoder (`cross`), then feed-forward."""

    def __init__(self, config: Options, cross: bool) -> None:
        super().__init__()
        self.attention, self.around_attention = Attention(config, cross=False), Residual(config)
        if cross:
            self.cross, self.around_cross = Attention(config, cross=True), Residual(config)
        self.feedforward, self.around_feedforward = FeedForward(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor, encoded: Tensor | None = None, source: Tensor | None = None) -> Tensor:
        """(B, L, D), in the decoder with encoder states (B, S, D) and their mask -> (B, L, D)."""
        x = self.around_attention(x, lambda x: self.attention(x, mask))
        if encoded is not None:
            x = self.around_cross(x, lambda x: self.cross(x, source, encoded))
        return self.around_feedforward(x, self.feedforward)


class PlainTransformer(nn.Module):
    """Encoder and decoder. config: `Transformer.config`, with the paper's sinusoids and decoder."""

    def __init__(self, config: Options, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        shown = config.positions, config.decoder, config.decoder_start
        assert shown == ("sinusoidal", "attention", "bos"), "not the paper's"
        self.scale = config.embedding_scale  # sqrt(D)
        # One matrix for all three, where the vocabularies are one (section 3.4).
        self.target_embedding, self.source_embedding, self.output_embedding = make_embeddings(
            config.share_embeddings, source_vocabulary, target_vocabulary, config.d_model
        )
        self.output_bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
        self.encoder = nn.ModuleList(Layer(config, cross=False) for _ in range(config.layers))
        self.decoder = nn.ModuleList(Layer(config, cross=True) for _ in range(config.decoder_layers))
        # With pre-norm no layer normalises the residual stream itself, so each stack ends with a norm.
        self.encoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        """(B, L) -> (B, L, D): sqrt(D) * embedding + position (sections 3.4 and 3.5)."""
        # Embeddings start with variance 1 / D: scaled, they are of the size of the sines that are added.
        x: Tensor = embedding(ids) * self.scale
        return x + sinusoids(*x.shape[1:]).to(x)

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """(B, S) -> encoder states (B, S, D)."""
        x = self.embed(source, self.source_embedding)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, target_in: Tensor, encoded: Tensor, source_mask: Tensor) -> Tensor:
        """(B, T), (B, S, D) -> (B, T, V): at each position, the logits of the next token."""
        x = self.embed(target_in, self.target_embedding)
        # All positions at once: position t attends to 0 .. t, as if the later tokens were not known yet.
        past = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).tril()  # (T, T): key <= query
        for layer in self.decoder:
            x = layer(x, past, encoded, source_mask)
        # A subword's logit is the dot product with its output vector, which may be its input vector too (section 3.4).
        return F.linear(self.decoder_norm(x), self.output_embedding.weight, self.output_bias)

    def forward(self, source: Tensor, source_lengths: Tensor, target_in: Tensor) -> Tensor:
        """(B, S), lengths (B,), (B, T) beginning with <s> -> logits (B, T, V).

        Padding follows the tokens: the mask hides the source's, and causal attention hides the target's.
        """
        tokens = torch.arange(source.size(1), device=source.device) < source_lengths[:, None]  # (B, S)
        mask = tokens[:, None, None, :]  # the same for all heads and queries
        return self.decode(target_in, self.encode(source, mask), mask)
