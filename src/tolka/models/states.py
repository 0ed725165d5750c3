"""What the decoders remember between two steps.

Shapes: B sentences, k hypotheses a sentence, S source tokens, H heads, E width of embeddings, D width of states.
"""

from dataclasses import dataclass
from typing import Self

from torch import Tensor

from tolka.models.base import DecoderState, staying
from tolka.nn.cache import KeyValueCache, chosen
from tolka.nn.recurrent import State


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """Keys and values: of the prefix once per hypothesis, of the source once per sentence."""

    prefix: list[KeyValueCache]  # per layer, of B * k prefixes
    memory: list[tuple[Tensor, Tensor]]  # per layer, what CrossAttention.remember made of B sentences
    padding: Tensor | None  # (B, 1, 1, S), true where there is no source token
    position: int
    beam: int

    def select(self, rows: Tensor) -> Self:
        """See DecoderState.select."""
        flat = rows.flatten()
        prefix = [cache.select(flat) for cache in self.prefix]
        memory, padding = self.memory, self.padding
        sentences = staying(rows, self.beam, len(memory[0][0]))
        if sentences is not None:
            memory = [(chosen(keys, sentences), chosen(values, sentences)) for keys, values in memory]
            padding = None if padding is None else padding.index_select(0, sentences)
        return type(self)(prefix, memory, padding, self.position, rows.size(1))


@dataclass(frozen=True)
class Memory:
    """What attention looks at, once a sentence: states (B, S, D), keys (B, S, D), mask (B, S) true at tokens."""

    encoded: Tensor
    keys: Tensor
    mask: Tensor

    def select(self, sentences: Tensor) -> Self:
        """Those of the sentences numbered (B',). This one is used up."""
        same, encoded = self.keys is self.encoded, chosen(self.encoded, sentences)
        keys = encoded if same else chosen(self.keys, sentences)
        return type(self)(encoded, keys, self.mask.index_select(0, sentences))


@dataclass(frozen=True)
class RnnState(DecoderState):
    """The layers' states and what is fed back once a hypothesis, the encoder's states once a sentence."""

    layers: list[State]  # each tensor (B * k, D)
    fed: Tensor | None  # (B * k, E)
    memory: Memory | None
    beam: int

    def select(self, rows: Tensor) -> Self:
        """See DecoderState.select."""
        flat, memory = rows.flatten(), self.memory
        layers = [tuple(tensor.index_select(0, flat) for tensor in state) for state in self.layers]
        fed = None if self.fed is None else self.fed.index_select(0, flat)
        if memory is not None:
            sentences = staying(rows, self.beam, len(memory.mask))
            memory = memory if sentences is None else memory.select(sentences)
        return type(self)(layers, fed, memory, rows.size(1))
