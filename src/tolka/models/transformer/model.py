"""The Transformer (Vaswani et al. 2017) with teacher forcing; `decoding.py` decodes with it, token by token.

`plain.py` computes the same function from padded tensors on one page: read that first. Here tokens are packed, one row
each, so that nothing is computed for padding. Shapes: B sentences, S source, T target, N rows of targets, M rows of
sources (see `tolka.kernels.packing`), H heads, D model width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tolka.data.batch import BOS, EOS, Batch
from tolka.kernels.attention import takes_packed
from tolka.kernels.packing import Packing, choose_packing
from tolka.models.embeddings import make_embeddings
from tolka.models.seq2seq import Inspection, Seq2Seq
from tolka.models.transformer.layers import DecoderLayer, EncoderLayer, make_norm
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.dropout import Dropout
from tolka.nn.initialization import initialise
from tolka.nn.positions import LearnedPositions, SinusoidalPositions


class Transformer(Seq2Seq):
    """Encoder and decoder, trained with teacher forcing. See `TransformerOptions` for what can be chosen."""

    architecture = "Transformer"
    trains_in_half = True

    def __init__(self, config: TransformerOptions, source_vocabulary: int, target_vocabulary: int) -> None:
        """config: resolved. source_vocabulary, target_vocabulary: numbers of subwords."""
        super().__init__()
        self.config = config
        self.vocabulary_size, self.feature_size = target_vocabulary, config.d_model
        self.target_embedding, self.source_embedding, self.output_embedding = make_embeddings(
            config.share_embeddings, source_vocabulary, target_vocabulary, config.d_model
        )
        self.output_bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
        # Two modules: learned positions differ between the languages.
        self.source_positions = self._make_positions()
        self.target_positions = self._make_positions()
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.decoder = cast(Sequence[DecoderLayer], decoder)
        # With pre-norm no layer normalises the residual stream itself, so each stack ends with a norm.
        self.encoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        # With standard deviation D^-0.5, sqrt(D) * embedding has variance 1.
        initialise(self, config.initialization, embedding_std=config.d_model**-0.5)

    def _make_positions(self) -> SinusoidalPositions | LearnedPositions | None:
        """Return the positions that are added to embeddings; rotary positions act inside attention instead."""
        if self.config.positions == "rotary":
            return None
        if self.config.positions == "learned":
            return LearnedPositions(self.config.d_model, self.config.max_positions)
        return SinusoidalPositions(self.config.d_model, self.config.positions)

    def forward(self, batch: Batch) -> Tensor:
        """Return the features (N, D) of the valid target tokens."""
        # Teacher forcing: target_in is the reference shifted by one, so that position t predicts its token t + 1.
        # The decoder reads tags too, whose positions are not among those of the references.
        positions = None if batch.target_tags else batch.target_positions
        config = self.config
        packed = positions is not None and takes_packed(next(self.parameters()), config.key_width, config.value_width)
        source = choose_packing(batch.source_lengths, batch.source.size(1), batch.source_positions, packed)
        target = choose_packing(batch.target_lengths, batch.target_in.size(1), positions, packed)
        return self._decode(batch, target, self._encode(batch.source, source), source)

    def _encode(self, source: Tensor, rows: Packing, maps: list[Tensor] | None = None) -> Tensor:
        """(B, S) -> encoder states (M, D). maps: where given, gets each layer's."""
        x = self._embed(source, rows, self.source_embedding, self.source_positions)  # (M, D)
        for layer in self.encoder:
            x = self._run_layer(layer, x, rows, maps)
        return self.encoder_norm(x)

    def _decode(
        self, batch: Batch, rows: Packing, encoded: Tensor, source: Packing, maps: list[Tensor] | None = None
    ) -> Tensor:
        """Encoder states (M, D) -> features (N, D) of the valid target tokens. maps: where given, gets each layer's."""
        x = self._embed(batch.target_in, rows, self.target_embedding, self.target_positions)
        for layer in self.decoder:
            x = self._run_layer(layer, x, rows, encoded, source, maps)
        # Without padding rows: neither the norm nor the much wider output layer computes anything for them.
        return self.decoder_norm(rows.token_rows(x, batch.target_positions))

    def _embed(self, ids: Tensor, rows: Packing, embedding: nn.Module, positions: nn.Module | None) -> Tensor:
        """(B, L) -> (N, D): sqrt(D) * embedding + position (section 3.4)."""
        # Scaled to variance 1: of the size of the sines and cosines that are added.
        x = self._vectors(rows.pack_ids(ids), embedding)
        if positions is not None:
            # A row's place is its position within its sentence: (L, D) -> (N, D).
            x = x + positions(0, rows.longest).to(x.dtype).index_select(0, rows.places)
        return self.dropout(x)

    def _vectors(self, ids: Tensor, embedding: nn.Module) -> Tensor:
        """(...) -> (..., D): sqrt(D) * embedding; that of `<s>`, which only the decoder reads, by `decoder_start`."""
        start, is_first = self.config.decoder_start, ids == BOS
        x: Tensor = embedding(ids.masked_fill(is_first, EOS) if start == "eos" else ids) * self.config.embedding_scale
        return x.masked_fill(is_first[..., None], 0.0) if start == "zero" else x

    def _run_layer(self, layer: nn.Module, *inputs: Any) -> Tensor:
        """Apply a layer; with `recompute` its activations are computed again for the backward pass."""
        # `checkpoint` restores the random state, so that dropout draws the same masks again.
        if self.recompute and self.training and torch.is_grad_enabled():
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)

    def inspect(self, batch: Batch) -> Inspection:
        """Return the maps encoder.L.self, decoder.L.self (not with an SSRU) and decoder.L.cross of every layer L."""
        # A row for each position, padding included: the maps are of padded sentences.
        source = Packing(batch.source_lengths, batch.source.size(1))
        target = Packing(batch.target_lengths, batch.target_in.size(1))
        maps: list[Tensor] = []
        features = self._decode(batch, target, self._encode(batch.source, source, maps), source, maps)
        names = [f"encoder.{number}.self" for number in range(len(self.encoder))]
        kinds = ["cross"] if self.config.decoder == "ssru" else ["self", "cross"]
        names += [f"decoder.{number}.{kind}" for number in range(len(self.decoder)) for kind in kinds]
        return Inspection(features, dict(zip(names, maps, strict=True)))

    def logits(self, features: Tensor) -> Tensor:
        """(..., D) -> (..., V): dot products with the rows of the output embedding, plus the bias if there is one."""
        # Apart from `forward`, so that the loss computes them in chunks and search for the last position alone.
        return self.output_embedding.scores(features, self.output_bias)

    def logits_parameters(self) -> list[nn.Parameter]:
        """Return every parameter that `logits` reads."""
        bias = [] if self.output_bias is None else [self.output_bias]
        return [*self.output_embedding.parameters(), *bias]

    def layers(self) -> list[nn.Module]:
        """Return the layers of both stacks."""
        return [*self.encoder, *self.decoder]
