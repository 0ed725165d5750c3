"""The Transformer (Vaswani et al. 2017), with post-norm as in the paper or pre-norm (Xiong et al. 2020).

Shapes: B sentences, k hypotheses a sentence, S source, T target, H heads, D model width, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.batch import PAD, Batch
from tolka.checks import at_least, one_of, share_below_one, zero_or_more
from tolka.errors import ConfigError
from tolka.models.base import MODELS, DecoderState, Inspection, ModelConfig, Seq2Seq
from tolka.nn.attention import CrossAttention, SelfAttention
from tolka.nn.dropout import Dropout
from tolka.nn.feedforward import ACTIVATIONS, FeedForward
from tolka.nn.positions import LearnedPositions, SinusoidalPositions

_NORMS = ("post", "pre")
_POSITIONS = ("sinusoidal", "learned")
_SHARING = ("auto", "all", "decoder", "none")
Maps = dict[str, Tensor]
Memory = list[tuple[Tensor, Tensor]]


@MODELS.register("transformer")
@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """Options of the Transformer; the defaults are the size called small."""

    name: str = "transformer"
    """the architecture: transformer"""
    d_model: int = 256
    """width of embeddings and layers"""
    heads: int = 4
    """attention heads; must divide d_model"""
    d_v: int = 0
    """width of one head's values; 0 = d_model / heads, like its keys"""
    d_ff: int = 0
    """inner width of the feed-forward sub-layer; 0 = 4 * d_model"""
    layers: int = 3
    """encoder layers, and decoder layers unless decoder_layers is set"""
    decoder_layers: int = 0
    """decoder layers; 0 = as many as the encoder"""
    norm: str = "pre"
    """layer normalisation around a sub-layer: post = LN(x + f(x)) as in the paper, pre = x + f(LN(x))"""
    activation: str = "relu"
    """of the feed-forward sub-layer: relu or gelu"""
    positions: str = "sinusoidal"
    """sinusoidal (no length limit) or learned"""
    max_positions: int = 512
    """how many learned positions there are; later ones share the last"""
    share_embeddings: str = "auto"
    """one matrix for: all = source, target and output; decoder = target and output; none; auto = as many as possible"""
    dropout: float = 0.1
    """on the sum of embedding and position and on each sub-layer's output"""
    attention_dropout: float = 0.0
    """on the attention weights"""
    activation_dropout: float = 0.0
    """inside the feed-forward sub-layer"""

    def __post_init__(self) -> None:
        at_least(self, "model", 1, "d_model", "heads", "layers", "max_positions")
        zero_or_more(self, "model", "follow the others", "d_v", "d_ff", "decoder_layers")
        if self.d_model % self.heads:
            raise ConfigError(f"model.d_model ({self.d_model}) must be a multiple of model.heads ({self.heads})")
        share_below_one(self, "model", "dropout", "attention_dropout", "activation_dropout")
        one_of(self, "model", "norm", _NORMS)
        one_of(self, "model", "positions", _POSITIONS)
        one_of(self, "model", "share_embeddings", _SHARING)
        one_of(self, "model", "activation", ACTIVATIONS)

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Transformer":
        """See ModelConfig.build; ConfigError when `share_embeddings=all` meets two vocabularies."""
        if self.share_embeddings == "all" and not shared:
            raise ConfigError("model.share_embeddings=all needs one vocabulary: set tokenizer.shared=true, or decoder")
        return Transformer(self, source_vocabulary, target_vocabulary, shared)


class Residual(nn.Module):
    """Residual connection, dropout and layer normalisation around a sub-layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)

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

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d_v = config.d_v or config.d_model // config.heads
        self.attention = SelfAttention(config.d_model, config.heads, d_v, config.attention_dropout)
        self.around_attention = Residual(config)
        self.feedforward = FeedForward(
            config.d_model, config.d_ff or 4 * config.d_model, config.activation, config.activation_dropout
        )
        self.around_feedforward = Residual(config)

    def forward(self, x: Tensor, mask: Tensor | None, maps: list[Tensor] | None = None) -> Tensor:
        """(B, S, D) -> (B, S, D); mask (B, 1, 1, S)."""
        x = self.around_attention.after(x, self.attention(self.around_attention.before(x), mask, False, maps))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder, feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d_v = config.d_v or config.d_model // config.heads
        self.attention = SelfAttention(config.d_model, config.heads, d_v, config.attention_dropout)
        self.around_attention = Residual(config)
        self.cross = CrossAttention(config.d_model, config.heads, d_v, config.attention_dropout)
        self.around_cross = Residual(config)
        self.feedforward = FeedForward(
            config.d_model, config.d_ff or 4 * config.d_model, config.activation, config.activation_dropout
        )
        self.around_feedforward = Residual(config)

    def forward(
        self, x: Tensor, encoded: Tensor, mask: Tensor | None, maps: list[list[Tensor]] | None = None
    ) -> Tensor:
        """(B, T, D) -> (B, T, D), all positions at once.

        The look-ahead mask alone keeps valid positions from padding, which only ever follows them.
        """
        self_maps, cross_maps = maps or (None, None)
        x = self.around_attention.after(x, self.attention(self.around_attention.before(x), None, True, self_maps))
        memory = self.cross.memory(encoded)
        x = self.around_cross.after(x, self.cross(self.around_cross.before(x), memory, mask, cross_maps))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x)))

    def step(
        self, x: Tensor, cache: tuple[Tensor, Tensor], memory: tuple[Tensor, Tensor], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One new position of each hypothesis: x (B, k, D) -> (B, k, D), and the longer cache."""
        sentences, beam, width = x.shape
        new, cache = self.attention.step(self.around_attention.before(x).view(sentences * beam, 1, width), cache)
        x = self.around_attention.after(x, new.view(sentences, beam, width))
        x = self.around_cross.after(x, self.cross(self.around_cross.before(x), memory, mask))
        return self.around_feedforward.after(x, self.feedforward(self.around_feedforward.before(x))), cache


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """Keys and values: of the prefix once per hypothesis, of the source once per sentence."""

    prefix: Memory  # per layer: keys (B * k, H, t, K), values (B * k, H, t, V)
    memory: Memory  # per layer: keys (B, H, S, K), values (B, H, S, V)
    mask: Tensor | None  # (B, 1, 1, S), true where there is a source token
    position: int
    beam: int

    def select(self, rows: Tensor) -> Self:
        """See DecoderState.select."""
        flat = rows.flatten()
        prefix = [(key.index_select(0, flat), value.index_select(0, flat)) for key, value in self.prefix]
        sentences = rows[:, 0] // self.beam
        memory, mask = self.memory, self.mask
        if len(sentences) != len(memory[0][0]) or not torch.equal(
            sentences, torch.arange(len(sentences), device=rows.device)
        ):
            memory = [(key.index_select(0, sentences), value.index_select(0, sentences)) for key, value in memory]
            mask = None if mask is None else mask.index_select(0, sentences)
        return type(self)(prefix, memory, mask, self.position, rows.size(1))


class Transformer(Seq2Seq):
    """See TransformerConfig for what can be chosen."""

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int, shared: bool) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = target_vocabulary
        sharing = config.share_embeddings
        if sharing == "auto":
            sharing = "all" if shared else "decoder"
        self.target_embedding = nn.Embedding(target_vocabulary, config.d_model, padding_idx=PAD)
        self.source_embedding = self.target_embedding
        if sharing != "all":
            self.source_embedding = nn.Embedding(source_vocabulary, config.d_model, padding_idx=PAD)
        self.output_embedding = self.target_embedding
        if sharing == "none":
            self.output_embedding = nn.Embedding(target_vocabulary, config.d_model)
        self.source_positions = self._positions()
        self.target_positions = self._positions()
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers or config.layers))
        # With pre-norm the residual stream itself is never normalised, so each stack ends on a norm of its own.
        self.encoder_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self._initialise()

    @property
    def _decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    def _positions(self) -> SinusoidalPositions | LearnedPositions:
        if self.config.positions == "learned":
            return LearnedPositions(self.config.d_model, self.config.max_positions)
        return SinusoidalPositions(self.config.d_model)

    def _initialise(self) -> None:
        """Xavier-uniform weights, zero biases; embeddings from N(0, 1/D), so that sqrt(D) * embedding has variance 1.

        A fused projection is initialised as if its parts were separate matrices (the fan-out is each part's own).
        """
        fused = {"query_key_value": 3, "key_value": 2}
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                parts = fused.get(name.rsplit(".", 1)[-1], 1)
                # Queries and keys have d_model rows each; what is left are the values.
                borders = [self.config.d_model * n for n in range(1, parts)]
                for piece in module.weight.tensor_split(borders):
                    nn.init.xavier_uniform_(piece)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.d_model**-0.5)
                if module.padding_idx is not None:
                    nn.init.zeros_(module.weight[module.padding_idx].detach())

    def _embed(
        self, ids: Tensor, embedding: nn.Module, positions: nn.Module, start: int = 0, length: int | None = None
    ) -> Tensor:
        """(B, L) -> (B, L, D): sqrt(D) * embedding + position."""
        where = positions(start, ids.size(1) if length is None else length)
        x: Tensor = self.dropout(embedding(ids) * math.sqrt(self.config.d_model) + where)
        return x

    def _encode(self, source: Tensor, mask: Tensor | None, maps: Maps | None = None) -> tuple[Tensor, list[Tensor]]:
        """(B, S) -> encoder states (B, S, D), and those after each layer."""
        x = self._embed(source, self.source_embedding, self.source_positions)
        states = []
        for number, layer in enumerate(self.encoder):
            kept: list[Tensor] | None = None if maps is None else []
            x = layer(x, mask, kept)
            states.append(x)
            if maps is not None and kept:
                maps[f"encoder.{number}.self"] = kept[0]
        return self.encoder_norm(x), states

    def _decode(self, batch: Batch, encoded: Tensor, mask: Tensor | None, maps: Maps | None = None) -> Tensor:
        """Features (N, D) of the valid target tokens."""
        x = self._embed(batch.target_in, self.target_embedding, self.target_positions)
        for number, layer in enumerate(self.decoder):
            kept: list[list[Tensor]] | None = None if maps is None else [[], []]
            x = layer(x, encoded, mask, kept)
            if maps is not None and kept:
                maps[f"decoder.{number}.self"], maps[f"decoder.{number}.cross"] = kept[0][0], kept[1][0]
        normed: Tensor = self.decoder_norm(batch.valid(x))
        return normed

    def forward(self, batch: Batch) -> Tensor:
        """See Seq2Seq.forward."""
        mask = source_mask(batch.source)
        encoded, _ = self._encode(batch.source, mask)
        return self._decode(batch, encoded, mask)

    def inspect(self, batch: Batch) -> Inspection:
        """See Seq2Seq.inspect. Maps: encoder.L.self, decoder.L.self, decoder.L.cross for every layer L."""
        maps: Maps = {}
        mask = source_mask(batch.source)
        encoded, states = self._encode(batch.source, mask, maps)
        return Inspection(self._decode(batch, encoded, mask, maps), maps, states)

    def logits(self, features: Tensor) -> Tensor:
        """See Seq2Seq.logits: the output embedding's rows, one score each."""
        return F.linear(features, self.output_embedding.weight)

    def logits_parameters(self) -> list[nn.Parameter]:
        """See Seq2Seq.logits_parameters."""
        return list(self.output_embedding.parameters())

    def start(self, source: Tensor, lengths: Tensor) -> TransformerState:
        """See Seq2Seq.start."""
        mask = source_mask(source)
        encoded, _ = self._encode(source, mask)
        memory = [layer.cross.memory(encoded) for layer in self._decoder_layers]
        heads = self.config.heads
        empty = encoded.new_empty(len(source), heads, 0, self.config.d_model // heads)
        empty_values = encoded.new_empty(len(source), heads, 0, self.config.d_v or self.config.d_model // heads)
        return TransformerState([(empty, empty_values)] * len(self.decoder), memory, mask, position=0, beam=1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """See Seq2Seq.step."""
        assert isinstance(state, TransformerState)
        x = self._embed(token, self.target_embedding, self.target_positions, state.position, length=1)
        prefix = []
        for layer, cache, memory in zip(self._decoder_layers, state.prefix, state.memory, strict=True):
            x, cache = layer.step(x, cache, memory, state.mask)
            prefix.append(cache)
        return self.decoder_norm(x), TransformerState(prefix, state.memory, state.mask, state.position + 1, state.beam)


def source_mask(source: Tensor) -> Tensor | None:
    """(B, S) ids -> (B, 1, 1, S), true at tokens; None without padding, which spares the kernels a mask."""
    tokens = source != PAD
    # On a GPU the answer to "is there padding" would have to be waited for.
    if source.device.type == "cpu" and bool(tokens.all()):
        return None
    return tokens[:, None, None, :]
