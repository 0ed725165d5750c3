"""Decoding with the recurrent models, token by token.

Shapes: B sentences, k hypotheses per sentence, S source tokens, E embedding width, D state width.
"""

from dataclasses import dataclass
from typing import Self

from torch import Tensor

from tolka.models.base import DecoderState, remaining_sentences
from tolka.models.rnn.model import EncoderMemory, RecurrentSeq2Seq
from tolka.nn.rnn_cells import State


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
            memory = memory if sentences is None else memory.select(sentences)
        return type(self)(layers, fed, memory, rows.size(1))


class DecodingRnn(RecurrentSeq2Seq):
    """The model that `RnnConfig.build` returns: `start` and `step` in addition to the training forward pass."""

    def start(self, source: Tensor, lengths: Tensor) -> RnnState:
        """Encode source (B, S) once; return the state before the first token."""
        memory, layers = self._encode(source, lengths)
        # The first step has no features before it: zeros are fed, as in training.
        feeding = self.config.input_feeding
        fed = layers[0][0].new_zeros(len(source), self.config.d_model) if feeding else None
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
