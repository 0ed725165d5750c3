"""Recurrent encoder-decoders: Elman, LSTM and GRU cells, deep, bidirectional, with and without attention.

Sutskever et al. (2014) without attention; with it Luong et al. (2015), or, scored additively, Bahdanau et al. (2015).
Shapes: B sentences, k hypotheses a sentence, S source, T target, N valid target tokens, E width of embeddings, D width
of states, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Self, cast

import torch
from torch import Tensor, nn

from tolka.batch import PAD, Batch
from tolka.checks import at_least, at_most, one_of, share_below_one, zero_or_more
from tolka.errors import ConfigError
from tolka.models.base import MODELS, MOST_LAYERS, MOST_WIDE, DecoderState, Inspection, ModelConfig, Seq2Seq
from tolka.models.embeddings import SHARING, Pieces, make_embeddings, settled_sharing
from tolka.models.states import Memory, RnnState
from tolka.nn.alignment import SCORES, Alignment
from tolka.nn.dropout import Dropout
from tolka.nn.initialization import INITIALIZATIONS, initialise
from tolka.nn.linear import Linear
from tolka.nn.quantized import QuantizedScores
from tolka.nn.recurrent import CELLS, Lstm, Recurrence, State, unrolled_encode


@MODELS.register("rnn")
@dataclass(frozen=True)
class RnnConfig(ModelConfig):
    """What can be chosen; the defaults are an LSTM without attention."""

    name: str = "rnn"
    """the architecture: rnn"""
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
    """whether what attention found at a step enters the next one (Luong et al. 2015, section 3.3)"""
    token_term: bool = False
    """whether the output layer sees the previous token's embedding too: y_t = s_t W + c_t W' + x_t W''"""
    forget_bias: float = 1.0
    """what an LSTM's forget gate begins with (Gers et al. 2000; Jozefowicz et al. 2015)"""
    share_embeddings: str = "auto"
    """which have one matrix: all, source_target, target_output, source_output, none; auto = as many as possible"""
    initialization: str = "xavier"
    """of weight matrices, uniform: xavier, or kaiming (He et al. 2015)"""
    dropout: float = 0.1
    """on embeddings, between layers and before the output layer, not inside a recurrence (Zaremba et al. 2014)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "model", 1, "layers")
        at_most(self, "model", MOST_LAYERS, "layers")
        zero_or_more(self, "model", "as d_model", "hidden")
        at_most(self, "model", MOST_WIDE, "hidden")
        one_of(self, "model", "cell", CELLS)
        one_of(self, "model", "attention", ("none", *SCORES))
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
                f"{', '.join(SCORES)}, or leave it out"
            )
        if self.forget_bias != type(self).forget_bias and self.cell != "lstm":
            raise ConfigError(
                f"model.forget_bias ({self.forget_bias:g}) is an LSTM's, and model.cell is {self.cell}: leave it out"
            )

    @property
    def recurrent(self) -> bool:
        """See ModelConfig.recurrent."""
        return True

    @property
    def width(self) -> int:
        """D, of states."""
        return self.hidden or self.d_model

    def spelt_out(self, shared: bool) -> Self:
        """See ModelConfig.spelt_out; ConfigError when source pieces would share a matrix with other target pieces."""
        sharing = settled_sharing(self.share_embeddings, shared)
        return replace(super().spelt_out(shared), hidden=self.width, share_embeddings=sharing)

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> "Rnn":
        """See ModelConfig.build; ConfigError when two vocabularies are to share a matrix."""
        return Rnn(self.spelt_out(shared), source_vocabulary, target_vocabulary)


class Rnn(Seq2Seq):
    """See RnnConfig for what can be chosen.

    The encoder's last states are the decoder's first ones, layer by layer. Features are W [s_t; c_t; x_t], as far as
    there are such terms, and the output layer adds its bias: y_t = s_t W + c_t W' + x_t W'' + b, through a matrix of
    embeddings' width. With input feeding they are the tanh of that, which enters the next step.
    """

    output_embedding: Pieces | QuantizedScores

    def __init__(self, config: RnnConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        """config: spelt out."""
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
        self.encoder = nn.ModuleList(cell(width, states // directions, config.bidirectional) for width in inputs)
        inputs[0] += config.d_model if config.input_feeding else 0
        self.decoder = nn.ModuleList(cell(width, states) for width in inputs)
        self.attention = Alignment(config.attention, states) if config.attention != "none" else None
        terms = states * (1 if self.attention is None else 2) + (config.d_model if config.token_term else 0)
        plain = self.attention is None and not config.token_term and states == config.d_model
        self.readout = nn.Identity() if plain else Linear(terms, config.d_model, bias=False)
        initialise(self, config.initialization, embedding_std=config.d_model**-0.5)
        for module in self.modules():
            if isinstance(module, Lstm):
                module.fill_forget_bias(config.forget_bias)

    @property
    def _encoder_layers(self) -> list[Recurrence]:
        return cast(list[Recurrence], list(self.encoder))

    @property
    def _decoder_layers(self) -> list[Recurrence]:
        return cast(list[Recurrence], list(self.decoder))

    def _encode(
        self, source: Tensor, lengths: Tensor, seen: Inspection | None = None
    ) -> tuple[Memory | None, list[State]]:
        """(B, S), (B,) -> what attention looks at, and each layer's last state; with `seen`, step by step."""
        x = self.dropout(self.source_embedding(source))
        last = []
        for number, layer in enumerate(self._encoder_layers):
            x = self.dropout(x) if number else x
            if seen is None:
                x, end = layer.encode(x, lengths)
            else:
                x, end, states = unrolled_encode(layer, x, lengths)
                seen.encoder_states.append(x)
                for direction, steps in zip(("forward", "backward"), states, strict=False):
                    seen.recurrence[f"encoder.{number}.{direction}"] = steps
            last.append(end)
        if self.attention is None:
            return None, last
        return Memory(x, self.attention.keys(x), source != PAD), last

    def _features(self, s: Tensor, x: Tensor, memory: Memory | None, maps: list[Tensor] | None = None) -> list[Tensor]:
        """States s (B, T, D) and the embeddings x (B, T, E) that led to them -> the features' terms, (B, T, .)."""
        terms = [s]
        if memory is not None and self.attention is not None:
            weights = self.attention.weights(s, memory.keys, memory.mask)
            terms.append(weights @ memory.encoded)
            if maps is not None:
                maps.append(weights)
        return [*terms, x] if self.config.token_term else terms

    def _read_out(self, terms: list[Tensor]) -> Tensor:
        """(..., .) each -> features (..., E)."""
        features: Tensor = self.readout(self.dropout(torch.cat(terms, dim=-1)))
        return torch.tanh(features) if self.config.input_feeding else features

    def _step_layers(self, x: Tensor, fed: Tensor | None, layers: list[State]) -> tuple[Tensor, list[State]]:
        """One step of every layer. x (R, E), fed (R, E) -> the last one's h (R, D), all states after it."""
        h = x if fed is None else torch.cat([x, fed], dim=-1)
        after = []
        for number, (layer, state) in enumerate(zip(self._decoder_layers, layers, strict=True)):
            state = layer.cell(layer.project(self.dropout(h) if number else h), state)
            h = state[0]
            after.append(state)
        return h, after

    def _decode(
        self, batch: Batch, memory: Memory | None, layers: list[State], seen: Inspection | None = None
    ) -> Tensor:
        """Features (N, E) of the valid target tokens."""
        x = self.dropout(self.target_embedding(batch.target_in))
        maps: list[Tensor] | None = None if seen is None else []
        if self.config.input_feeding:
            fed, features = x.new_zeros(len(x), self.config.d_model), []
            for t in range(x.size(1)):
                h, layers = self._step_layers(x[:, t], fed, layers)
                terms = self._features(h[:, None], x[:, t : t + 1], memory, maps)
                fed = self._read_out([term[:, 0] for term in terms])
                features.append(fed)
            found = batch.valid(torch.stack(features, dim=1))
        else:
            s = x
            for number, (layer, state) in enumerate(zip(self._decoder_layers, layers, strict=True)):
                s = self.dropout(s) if number else s
                if seen is None:
                    s = layer.decode(s, state)
                else:
                    s = torch.stack([after[0] for after in layer.unroll(s, None, state)], dim=1)
            found = self._read_out([batch.valid(term) for term in self._features(s, x, memory, maps)])
        if seen is not None and maps:
            seen.attention[f"decoder.{self.config.layers - 1}.cross"] = torch.cat(maps, dim=1)[:, None]
        return found

    def forward(self, batch: Batch) -> Tensor:
        """See Seq2Seq.forward."""
        return self._decode(batch, *self._encode(batch.source, batch.source_lengths))

    def inspect(self, batch: Batch) -> Inspection:
        """See Seq2Seq.inspect. One map, of the decoder's last layer, where there is attention."""
        seen = Inspection(torch.empty(0))
        memory, layers = self._encode(batch.source, batch.source_lengths, seen)
        return replace(seen, features=self._decode(batch, memory, layers, seen))

    def logits(self, features: Tensor) -> Tensor:
        """See Seq2Seq.logits: the output embedding's rows, one score each, and the bias."""
        return self.output_embedding.scores(features, self.output_bias)

    def quantize(self) -> None:
        """See Seq2Seq.quantize; the recurrences stay as they are."""
        super().quantize()
        if isinstance(self.output_embedding, Pieces):
            self.output_embedding = QuantizedScores(self.output_embedding, self.output_bias.detach())

    def logits_parameters(self) -> list[nn.Parameter]:
        """See Seq2Seq.logits_parameters."""
        return [*self.output_embedding.parameters(), self.output_bias]

    def start(self, source: Tensor, lengths: Tensor) -> RnnState:
        """See Seq2Seq.start."""
        memory, layers = self._encode(source, lengths)
        feeding = self.config.input_feeding
        fed = layers[0][0].new_zeros(len(source), self.config.d_model) if feeding else None
        return RnnState(layers, fed, memory, beam=1)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """See Seq2Seq.step."""
        assert isinstance(state, RnnState)
        x = self.target_embedding(token)  # (B, k, E)
        h, layers = self._step_layers(x.flatten(0, 1), state.fed, state.layers)
        s = h.view(*token.shape, -1)
        features = self._read_out(self._features(s, x, state.memory))
        fed = features.flatten(0, 1) if state.fed is not None else None
        return features, RnnState(layers, fed, state.memory, state.beam)
