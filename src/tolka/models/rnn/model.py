"""Recurrent encoder-decoders, in training with teacher forcing, in decoding token by token.

Sutskever et al. (2014) without attention; with it Luong et al. (2015), or, scored additively, Bahdanau et al. (2015).
Shapes: B sentences, k hypotheses per sentence, S source, T target, N valid target tokens, E embedding width, D state
width, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from tolka.data.batch import PAD, Batch
from tolka.models.base import DecoderState, Inspection, Seq2Seq, remaining_sentences
from tolka.models.embeddings import make_embeddings
from tolka.models.rnn.options import RnnOptions
from tolka.nn.dropout import Dropout
from tolka.nn.initialization import initialise
from tolka.nn.linear import Linear
from tolka.nn.rnn_attention import Alignment
from tolka.nn.rnn_cells import CELLS, LstmLayer, RecurrentLayer, State


class EncoderMemory(NamedTuple):
    """What the decoder attends to, once per sentence: states (B, S, D), keys (B, S, D), mask (B, S) true at tokens."""

    encoded: Tensor
    keys: Tensor
    mask: Tensor


@dataclass(frozen=True)
class RnnState(DecoderState):
    """The layers' states and the features fed back once per hypothesis, the encoder's states once per sentence."""

    layers: list[State]  # each tensor (B * k, D)
    fed: Tensor | None  # (B * k, E), with input feeding
    memory: EncoderMemory | None  # of B sentences, with attention
    beam: int  # k

    def select(self, rows: Tensor) -> Self:
        """Keep the hypotheses `rows` (B', k'), and the memory of the sentences that remain."""
        flat, memory = rows.flatten(), self.memory
        # A recurrent state is small and wholly new at each step: copying it costs little, unlike a Transformer's cache.
        layers = [tuple(tensor.index_select(0, flat) for tensor in state) for state in self.layers]
        fed = None if self.fed is None else self.fed.index_select(0, flat)
        if memory is not None:
            sentences = remaining_sentences(rows, self.beam, len(memory.mask))
            if sentences is not None:
                memory = EncoderMemory(*(each.index_select(0, sentences) for each in memory))
        return type(self)(layers, fed, memory, rows.size(1))


class RecurrentSeq2Seq(Seq2Seq):
    """Encoder and decoder. See `RnnOptions` for what can be chosen.

    The encoder's last states are the decoder's first ones, layer by layer. Features are W [s_t; c_t; x_t], or
    those of the terms that the options include, of the embeddings' width, and the output layer adds its bias:
    y_t = s_t W + c_t W' + x_t W'' + b. With input feeding they are the tanh of that, and enter the next step.
    """

    architecture = "Rnn"

    def __init__(self, config: RnnOptions, source_vocabulary: int, target_vocabulary: int) -> None:
        """config: resolved. source_vocabulary, target_vocabulary: numbers of subwords."""
        super().__init__()
        self.config = config
        self.vocabulary_size, self.feature_size = target_vocabulary, config.d_model
        self.target_embedding, self.source_embedding, self.output_embedding = make_embeddings(
            config.share_embeddings, source_vocabulary, target_vocabulary, config.d_model
        )
        self.output_bias = nn.Parameter(torch.zeros(target_vocabulary))
        self.dropout = Dropout(config.dropout)
        cell, states = CELLS[config.cell], config.width
        directions = 2 if config.bidirectional else 1
        inputs = [config.d_model] + [states] * (config.layers - 1)
        # Both directions together are as wide as the decoder's state, which begins with them.
        encoder = nn.ModuleList(cell(width, states // directions, config.bidirectional) for width in inputs)
        inputs[0] += config.d_model if config.input_feeding else 0
        decoder = nn.ModuleList(cell(width, states) for width in inputs)
        self.encoder, self.decoder = cast(Sequence[RecurrentLayer], encoder), cast(Sequence[RecurrentLayer], decoder)
        self.attention = Alignment(config.attention, states) if config.attention != "none" else None
        terms = states * (1 if self.attention is None else 2) + (config.d_model if config.token_term else 0)
        # [s; c; x] W is s W + c W' + x W'' in one multiplication. s alone, of the embeddings' width, needs no W: the
        # output layer follows at once.
        plain = self.attention is None and not config.token_term and states == config.d_model
        self.readout = nn.Identity() if plain else Linear(terms, config.d_model, bias=False)
        initialise(self, config.initialization, embedding_std=config.d_model**-0.5)
        # Afterwards, as `initialise` sets all biases to 0.
        for module in self.modules():
            if isinstance(module, LstmLayer):
                module.open_forget_gates()

    def _encode(self, source: Tensor, lengths: Tensor) -> tuple[EncoderMemory | None, list[State]]:
        """(B, S), (B,) -> the memory for attention, and each layer's last state."""
        x = self.dropout(self.source_embedding(source))
        last = []
        for number, layer in enumerate(self.encoder):
            # Between layers only (Zaremba et al. 2014): within the recurrence, dropout would erase its memory.
            x = self.dropout(x) if number else x
            x, end = layer.encode(x, lengths)
            last.append(end)
        memory = None if self.attention is None else EncoderMemory(x, self.attention.keys(x), source != PAD)
        return memory, last

    def _features(
        self, s: Tensor, x: Tensor, memory: EncoderMemory | None, maps: list[Tensor] | None = None
    ) -> list[Tensor]:
        """States s (B, T, D) and their input embeddings x (B, T, E) -> the features' terms, (B, T, .) each."""
        terms = [s]
        if memory is not None and self.attention is not None:
            # s_t asks, as in Luong et al.; Bahdanau et al. ask with s_{t-1}, so that c_t can enter s_t.
            weights = self.attention.weights(s, memory.keys, memory.mask)  # (B, T, S)
            terms.append(weights @ memory.encoded)  # c_t = sum_j a_tj h_j
            if maps is not None:
                maps.append(weights)
        return [*terms, x] if self.config.token_term else terms

    def _read_out(self, terms: list[Tensor]) -> Tensor:
        """Terms (..., .) -> features (..., E)."""
        features: Tensor = self.readout(self.dropout(torch.cat(terms, dim=-1)))
        # tanh(W [c; h]) is fed back (Luong et al. 2015, equation 5).
        return torch.tanh(features) if self.config.input_feeding else features

    def _step_layers(self, x: Tensor, fed: Tensor | None, layers: list[State]) -> tuple[Tensor, list[State]]:
        """Run one step of every layer: x (R, E), fed (R, E) -> the last layer's h (R, D), and all new states."""
        h = x if fed is None else torch.cat([x, fed], dim=-1)  # (R, E), or (R, 2E)
        after = []
        for number, (layer, state) in enumerate(zip(self.decoder, layers, strict=True)):
            state = layer.cell(layer.project(self.dropout(h) if number else h), state)
            h = state[0]
            after.append(state)
        return h, after

    def _decode(
        self, batch: Batch, memory: EncoderMemory | None, layers: list[State], maps: list[Tensor] | None = None
    ) -> Tensor:
        """Return the features (N, E) of the valid target tokens. maps: where given, gets weights (B, ., S)."""
        x = self.dropout(self.target_embedding(batch.target_in))
        if self.config.input_feeding:
            # A step's input contains the features of the one before: attention and read-out go into the loop, and
            # torch's kernel, which runs over all steps by itself, cannot be used.
            fed, steps = x.new_zeros(len(x), self.config.d_model), []
            for t in range(x.size(1)):
                h, layers = self._step_layers(x[:, t], fed, layers)
                terms = self._features(h[:, None], x[:, t : t + 1], memory, maps)
                fed = self._read_out([term[:, 0] for term in terms])
                steps.append(fed)
            return batch.valid(torch.stack(steps, dim=1))
        # Without it no state depends on attention: layer after layer over all steps, then attention for all.
        s = x
        for number, (layer, state) in enumerate(zip(self.decoder, layers, strict=True)):
            s = layer.decode(self.dropout(s) if number else s, state)
        # From here on without padding.
        return self._read_out([batch.valid(term) for term in self._features(s, x, memory, maps)])

    def forward(self, batch: Batch) -> Tensor:
        # Teacher forcing: the decoder reads the reference's tokens, whatever it would have predicted.
        return self._decode(batch, *self._encode(batch.source, batch.source_lengths))

    def inspect(self, batch: Batch) -> Inspection:
        """With attention, return the map of the decoder's last layer."""
        maps: list[Tensor] = []
        features = self._decode(batch, *self._encode(batch.source, batch.source_lengths), maps)
        attention = {f"decoder.{self.config.layers - 1}.cross": torch.cat(maps, dim=1)[:, None]} if maps else {}
        return Inspection(features, attention)

    def start(self, source: Tensor, lengths: Tensor) -> RnnState:
        """Encode source (B, S) once; return the state before the first token."""
        memory, layers = self._encode(source, lengths)
        # The first step has no features before it: zeros are fed, as in training.
        fed = layers[0][0].new_zeros(len(source), self.config.d_model) if self.config.input_feeding else None
        return RnnState(layers, fed, memory, beam=1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """token (B, k), the last one of each hypothesis -> features (B, k, E) of the next one, and the new state."""
        assert isinstance(state, RnnState)
        x = self.target_embedding(token)  # (B, k, E)
        h, layers = self._step_layers(x.flatten(0, 1), state.fed, state.layers)
        # The k hypotheses of a sentence stand where training has T positions: they attend to one memory.
        s = h.view(*token.shape, -1)  # (B, k, D)
        features = self._read_out(self._features(s, x, state.memory))
        fed = features.flatten(0, 1) if state.fed is not None else None
        return features, RnnState(layers, fed, state.memory, state.beam)

    def logits(self, features: Tensor) -> Tensor:
        """(..., E) -> (..., V): the dot products with the rows of the output embedding, plus the bias."""
        return self.output_embedding.scores(features, self.output_bias)

    def logits_parameters(self) -> list[nn.Parameter]:
        return [*self.output_embedding.parameters(), self.output_bias]
