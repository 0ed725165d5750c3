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

from tolka.errors import ConfigError
from tolka.models.transformer.options import TransformerOptions as Options

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}
# Others need more code.
_KNOWN = {
    "positions": ("sinusoidal", "sinusoidal_halves"),
    "activation": tuple(_ACTIVATIONS),
    "decoder_start": ("bos",),
}


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V (equation 1): (B, H, T, d_k), (B, H, S, d_k), (B, H, S, d_v) -> (B, H, T, d_v)."""
    # A dot product of d_k terms of variance 1 has variance d_k: unscaled, the softmax would saturate (footnote 4).
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (B, H, T, S)
    # mask: true where a query may attend; exp(-inf) = 0 elsewhere.
    scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ value  # each row of weights sums to 1


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(same) (section 3.5): (L, D), fp32 as in `model.py`."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates  # (L, D / 2)
    # Side by side, sine and cosine of one angle: a shift by k is a rotation of each pair, the same at every position.
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


def sinusoids_in_halves(length: int, width: int) -> Tensor:
    """The same with all sines before all cosines, as in Marian; the angles are in float64, as in `model.py`: (L, D)."""
    angles = torch.arange(length)[:, None].double() / 10000.0 ** (torch.arange(0, width, 2).double() / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


class Attention(nn.Module):
    """Multi-head attention (section 3.2.2), of a sequence to itself or, if `cross`, to the encoder's states."""

    def __init__(self, config: Options, cross: bool) -> None:
        super().__init__()
        self.heads, self.cross = config.heads, cross
        keys, values = config.heads * config.key_width, config.heads * config.d_v
        if cross:
            self.query, self.key_value = nn.Linear(config.d_model, keys), nn.Linear(config.d_model, keys + values)
        else:  # W_Q, W_K and W_V one below the other
            self.query_key_value = nn.Linear(config.d_model, keys + keys + values)
        self.widths = [keys, values] if cross else [keys, keys, values]
        self.output = nn.Linear(values, config.d_model)

    def forward(self, x: Tensor, mask: Tensor, encoded: Tensor | None = None) -> Tensor:
        """(B, T, D), if `cross` with (B, S, D) -> (B, T, D)."""
        if self.cross:
            projected = [self.query(x), *self.key_value(encoded).split(self.widths, dim=-1)]
        else:
            projected = self.query_key_value(x).split(self.widths, dim=-1)
        # H heads of width D / H: (B, L, H * d) -> (B, H, L, d).
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in projected)
        heads = attend(query, key, value, mask)
        return self.output(heads.transpose(1, 2).flatten(2))  # side by side, through W_O


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2 (equation 2), at each position separately."""

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(config.d_model, config.d_ff), nn.Linear(config.d_ff, config.d_model)
        self.activation = _ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        return self.outer(self.activation(self.inner(x)))


def normalisation(config: Options) -> nn.Module:
    """LayerNorm (Ba et al. 2016), or RMSNorm, which neither centres nor has a bias (Zhang and Sennrich 2019)."""
    return nn.LayerNorm(config.d_model) if config.normalization == "layernorm" else nn.RMSNorm(config.d_model, eps=1e-6)


class Residual(nn.Module):
    """Residual connection around a sub-layer f: N(x + f(x)) (section 3.1), or pre-norm, x + f(N(x)) (Xiong et al.
    2020).
    """

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.pre, self.norm = config.norm == "pre", normalisation(config)

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        # Either way a sub-layer computes what is added to x, so that the gradient has a path around it.
        return x + f(self.norm(x)) if self.pre else self.norm(x + f(x))


class EncoderLayer(nn.Module):
    """Figure 1, left: self-attention, then feed-forward."""

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.attention, self.around_attention = Attention(config, cross=False), Residual(config)
        self.feedforward, self.around_feedforward = FeedForward(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        x = self.around_attention(x, lambda x: self.attention(x, mask))
        return self.around_feedforward(x, self.feedforward)


class DecoderLayer(nn.Module):
    """Figure 1, right: causal self-attention, attention to the encoder, then feed-forward."""

    def __init__(self, config: Options) -> None:
        super().__init__()
        self.attention, self.around_attention = Attention(config, cross=False), Residual(config)
        self.cross, self.around_cross = Attention(config, cross=True), Residual(config)
        self.feedforward, self.around_feedforward = FeedForward(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor, encoded: Tensor, source_mask: Tensor) -> Tensor:
        """(B, T, D), (B, S, D) -> (B, T, D)."""
        x = self.around_attention(x, lambda x: self.attention(x, mask))
        x = self.around_cross(x, lambda x: self.cross(x, source_mask, encoded))
        return self.around_feedforward(x, self.feedforward)


class PlainTransformer(nn.Module):
    """Encoder and decoder. config: `Transformer.config`, which is resolved; ConfigError for another."""

    def __init__(self, config: Options, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        for key, known in _KNOWN.items():
            if getattr(config, key) not in known:
                raise ConfigError(f"plain.py shows model.{key}={' or '.join(known)}, not {getattr(config, key)}")
        if config.share_embeddings == "auto" or 0 in (config.d_v, config.d_ff, config.decoder_layers):
            raise ConfigError("PlainTransformer takes a model's config: pass model.config, or config.resolved(shared)")
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.halves = config.positions == "sinusoidal_halves"
        # One module under two names is one matrix (section 3.4).
        target, shared = nn.Embedding(target_vocabulary, config.d_model), config.share_embeddings
        one = shared in ("all", "source_target")
        source = target if one else nn.Embedding(source_vocabulary, config.d_model)
        outputs = {"all": target, "target_output": target, "source_output": source}
        self.target_embedding, self.source_embedding = target, source
        self.output_embedding = outputs.get(shared) or nn.Embedding(target_vocabulary, config.d_model)
        self.output_bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # With pre-norm no layer normalises the residual stream itself, so each stack ends with a norm.
        self.encoder_norm = normalisation(config) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = normalisation(config) if config.norm == "pre" else nn.Identity()

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        """(B, L) -> (B, L, D): sqrt(D) * embedding + position (sections 3.4 and 3.5)."""
        # Embeddings start with variance 1 / D: scaled, they are of the size of the sines that are added.
        x: Tensor = embedding(ids) * self.scale
        table = sinusoids_in_halves if self.halves else sinusoids
        return x + table(*x.shape[1:]).to(x)

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
