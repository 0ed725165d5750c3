"""The Transformer (Vaswani et al. 2017), with post-norm as in the paper or pre-norm (Xiong et al. 2020).

Shapes: B sentences, k hypotheses a sentence, S source, T target, N rows of a packing of targets, M of sources, H heads,
D model width, V vocabulary.
"""

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tolka.batch import Batch, token_positions
from tolka.models.base import MODELS, DecoderState, Inspection, Seq2Seq
from tolka.models.embeddings import Pieces, make_embeddings
from tolka.models.states import TransformerState
from tolka.models.transformer.layers import DecoderLayer, EncoderLayer, normalisation
from tolka.models.transformer.options import TransformerOptions
from tolka.nn.cache import KeyValueCache
from tolka.nn.dropout import Dropout
from tolka.nn.initialization import initialise
from tolka.nn.packing import FusedPacking, Packing
from tolka.nn.positions import LearnedPositions, SinusoidalPositions
from tolka.nn.products import shapes_cost, steady_rows
from tolka.nn.quantized import QuantizedScores
from tolka.nn.variable_length import has_packed_attention

_checkpoint = inspect.unwrap(checkpoint)  # without the decorator that imports torch's compiler
_ENCODED_AT_ONCE = 1024  # positions: 0.37 s for 1000 sentences of 15, where 8192 take 0.56
_WORTH_PACKING = 0.01  # share of padding, from which on rows are copied for attention rather than computed for nothing


@MODELS.register("transformer")
@dataclass(frozen=True)
class TransformerConfig(TransformerOptions):
    """Options of the Transformer."""

    name: str = "transformer"
    """the architecture: transformer"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Transformer":
        """See ModelConfig.build; ConfigError when two vocabularies are to share a matrix."""
        return Transformer(self.spelt_out(shared), source_vocabulary, target_vocabulary)


class Transformer(Seq2Seq):
    """See TransformerConfig for what can be chosen."""

    output_embedding: Pieces | QuantizedScores

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        """config: spelt out."""
        super().__init__()
        self.config = config
        self.vocabulary_size, self.feature_size = target_vocabulary, config.d_model
        self.target_embedding, self.source_embedding, self.output_embedding = make_embeddings(
            config.share_embeddings, source_vocabulary, target_vocabulary, config.d_model
        )
        self.source_positions = self._positions()
        self.target_positions = self._positions()
        self.dropout = Dropout(config.embedding_rate)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        # With pre-norm the residual stream itself is never normalised, so each stack ends on a norm of its own.
        self.encoder_norm = normalisation(config) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = normalisation(config) if config.norm == "pre" else nn.Identity()
        # So that sqrt(D) * embedding has variance 1.
        normal = config.embedding_initialization == "normal"
        initialise(self, config.initialization, embedding_std=config.d_model**-0.5 if normal else None)

    @property
    def _decoder_layers(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder))

    def _positions(self) -> SinusoidalPositions | LearnedPositions | None:
        """What is added to embeddings; rotary positions are the attention's business."""
        if self.config.positions == "rotary":
            return None
        if self.config.positions == "learned":
            return LearnedPositions(self.config.d_model, self.config.max_positions)
        return SinusoidalPositions(self.config.d_model)

    def _embed(self, ids: Tensor, rows: Packing, embedding: nn.Module, positions: nn.Module | None) -> Tensor:
        """(B, L) -> (N, D): sqrt(D) * embedding + position."""
        x: Tensor = embedding(rows.ids(ids)) * math.sqrt(self.config.d_model)
        if positions is not None:
            x = rows.add(x, positions(0, rows.longest))
        dropped: Tensor = self.dropout(x)
        return dropped

    def _skips_a_layer(self) -> bool:
        """LayerDrop (Fan et al. 2020): in training, each layer is left out with probability `layerdrop`.

        Drawn from the CPU's generator, which a GPU need not be waited for and a resumed training restores.
        """
        rate = self.config.layerdrop
        return self.training and rate > 0.0 and torch.rand((), device="cpu").item() < rate

    def _through(self, layer: nn.Module, *inputs: Any) -> Tensor:
        """The layer's output; the same masks are drawn again where it is computed twice."""
        if self.recompute and self.training and torch.is_grad_enabled():
            return cast(Tensor, _checkpoint(layer, *inputs, use_reentrant=False))
        return cast(Tensor, layer(*inputs))

    def _encode(self, source: Tensor, rows: Packing, seen: Inspection | None = None) -> Tensor:
        """(B, S) -> encoder states (M, D)."""
        x = self._embed(source, rows, self.source_embedding, self.source_positions)
        for number, layer in enumerate(self.encoder):
            if not self._skips_a_layer():
                kept: list[Tensor] | None = None if seen is None else []
                x = self._through(layer, x, rows, kept)
                if seen is not None and kept:
                    seen.attention[f"encoder.{number}.self"] = kept[0]
            if seen is not None:
                seen.encoder_states.append(rows.pad(x))
                x = rows.pack(seen.encoder_states[-1])
        normed: Tensor = self.encoder_norm(x)
        return normed

    def _decode(
        self, batch: Batch, rows: Packing, encoded: Tensor, source: Packing, seen: Inspection | None = None
    ) -> Tensor:
        """Features (N, D) of the valid target tokens."""
        x = self._embed(batch.target_in, rows, self.target_embedding, self.target_positions)
        for number, layer in enumerate(self.decoder):
            if self._skips_a_layer():
                continue
            kept: list[list[Tensor]] | None = None if seen is None else [[], []]
            x = self._through(layer, x, rows, encoded, source, kept)
            if seen is not None and kept:
                for which, maps in zip(("self", "cross"), kept, strict=True):
                    seen.attention[f"decoder.{number}.{which}"] = maps[0]
        normed: Tensor = self.decoder_norm(rows.of_tokens(x, batch.target_positions))
        return normed

    def forward(self, batch: Batch) -> Tensor:
        """See Seq2Seq.forward."""
        source = self._packing(batch.source_lengths, batch.source.size(1), batch.source_positions)
        target = self._packing(batch.target_lengths, batch.target_in.size(1), batch.target_positions)
        return self._decode(batch, target, self._encode(batch.source, source), source)

    def _packing(self, lengths: Tensor, longest: int, tokens: Tensor) -> Packing:
        """As `packing`; where the device has a kernel for packed rows, without padding at all."""
        half = torch.is_autocast_enabled(lengths.device.type)
        dtype = torch.get_autocast_dtype(lengths.device.type) if half else self.target_embedding.weight.dtype
        if has_packed_attention(lengths.device, dtype, self.config.key_width, self.config.value_width):
            return FusedPacking(lengths, longest, tokens)
        return packing(lengths, longest, tokens)

    def inspect(self, batch: Batch) -> Inspection:
        """See Seq2Seq.inspect. Maps: encoder.L.self, decoder.L.self, decoder.L.cross for every layer L."""
        seen = Inspection(torch.empty(0))
        source = Packing(batch.source_lengths, batch.source.size(1))
        target = Packing(batch.target_lengths, batch.target_in.size(1))
        encoded = self._encode(batch.source, source, seen)
        return replace(seen, features=self._decode(batch, target, encoded, source, seen))

    def logits(self, features: Tensor) -> Tensor:
        """See Seq2Seq.logits: the output embedding's rows, one score each."""
        return self.output_embedding.scores(features)

    def quantize(self) -> None:
        """See Seq2Seq.quantize."""
        super().quantize()
        if isinstance(self.output_embedding, Pieces):
            self.output_embedding = QuantizedScores(self.output_embedding)

    def compile_layers(self, mode: str | None = None, backend: str = "inductor") -> None:
        """See Seq2Seq.compile_layers: one program serves all layers of a stack, and batches of all sizes."""
        for layer in (*self.encoder, *self.decoder):
            layer.compile(dynamic=True, mode=mode, backend=backend)

    def logits_parameters(self) -> list[nn.Parameter]:
        """See Seq2Seq.logits_parameters."""
        return list(self.output_embedding.parameters())

    def start(self, source: Tensor, lengths: Tensor) -> TransformerState:
        """See Seq2Seq.start."""
        memory = self._memory(source, lengths)
        prefix = [layer.attention.empty_cache(memory[0][0], len(source)) for layer in self._decoder_layers]
        mask = packing(lengths, source.size(1)).mask
        return TransformerState(prefix, memory, None if mask is None else ~mask, position=0, beam=1)

    def _memory(self, source: Tensor, lengths: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What each decoder layer needs of the encoder. On a CPU encoded a few sentences at a time, each without the
        padding of the others, so that what is between two layers stays in the processor's cache."""
        if source.device.type != "cpu":
            return [(keys.contiguous(), values.contiguous()) for keys, values in self._remember(source, lengths)]
        sentences, longest = source.shape
        memory: list[tuple[Tensor, Tensor]] = []
        count = max(1, _ENCODED_AT_ONCE // longest)
        for some in (slice(start, start + count) for start in range(0, sentences, count)):
            part = source[some, : int(lengths[some].max())]
            for number, (keys, values) in enumerate(self._remember(part, lengths[some])):
                if number == len(memory):
                    (heads, inner), outer = keys.shape[1:3], values.size(3)
                    shapes = (sentences, heads, inner, longest), (sentences, heads, longest, outer)
                    memory.append((keys.new_empty(shapes[0]), values.new_empty(shapes[1])))
                _fill(memory[number][0][some], keys)
                _fill(memory[number][1][some], values)
        return memory

    def _remember(self, source: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """(B, S), (B,) -> of each decoder layer, views."""
        rows = packing(lengths, source.size(1))
        encoded = self._encode(source, rows)
        for layer in self._decoder_layers:
            yield layer.cross.remember(encoded, rows)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """See Seq2Seq.step."""
        assert isinstance(state, TransformerState)
        x, position = self.target_embedding(token) * math.sqrt(self.config.d_model), state.position
        if self.target_positions is not None:
            x = x + self.target_positions(position, 1)
        prefix: list[KeyValueCache] = []
        for layer, cache, memory in zip(self._decoder_layers, state.prefix, state.memory, strict=True):
            x, cache = layer.step(x, cache, memory, state.padding)
            prefix.append(cache)
        return self.decoder_norm(x), TransformerState(prefix, state.memory, state.padding, position + 1, state.beam)


def _fill(room: Tensor, part: Tensor) -> None:
    """Put in a part (B, H, ., .); what it leaves becomes 0, as a mask does not hide what is no number."""
    room[:, :, : part.size(2), : part.size(3)] = part
    room[:, :, part.size(2) :] = 0
    room[..., part.size(3) :] = 0


def packing(lengths: Tensor, longest: int, tokens: Tensor | None = None) -> Packing:
    """How sentences of `lengths` (B,) and padding up to `longest` are best computed on their device.

    tokens: where in (B, longest), flattened, the tokens are; found where it is not given.
    """
    if lengths.device.type != "cpu":
        return Packing(lengths, longest)  # to find out what there is to gain would be to wait for the device
    count = len(tokens) if tokens is not None else int(lengths.sum())
    padding = 1 - count / (len(lengths) * longest)
    fillers = steady_rows(count) - count if shapes_cost() else 0
    if padding < _WORTH_PACKING and not fillers:
        return Packing(lengths, longest, masked=padding > 0)
    if tokens is None:
        tokens = token_positions(lengths, longest)
    return Packing(lengths, longest, tokens, padding > 0, fillers)
