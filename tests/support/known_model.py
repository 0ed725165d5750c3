"""A model whose probabilities are all known."""

import math

import torch
from torch import Tensor, nn

from tolka.data.batch import BOS, EOS, Batch
from tolka.models.base import DecoderState, Seq2Seq

C, A, B = 3, 4, 5
# P(next | last): greedy takes A (0.6), which then spreads out; B (0.4) surely ends.
TABLE = {BOS: {A: 0.6, B: 0.4}, A: {EOS: 0.36, A: 0.34, B: 0.3}, B: {EOS: 0.99, A: 0.01}}


class Prefix(DecoderState):
    """An empty state: only the last token matters."""

    def select(self, rows: Tensor) -> "Prefix":
        return self


class Known(Seq2Seq):
    """A first-order chain with the probabilities of TABLE."""

    vocabulary_size = feature_size = 6

    def __init__(self, table: dict[int, dict[int, float]]) -> None:
        super().__init__()
        self.table = torch.zeros(6, 6)
        for last, following in table.items():
            self.table[last] = float("-inf")
            for token, p in following.items():
                self.table[last, token] = math.log(p)

    def forward(self, batch: Batch) -> Tensor:
        return batch.valid(self.table[batch.target_in])

    def logits(self, features: Tensor) -> Tensor:
        return features.clone()

    def logits_parameters(self) -> list[nn.Parameter]:
        return []

    def start(self, source: Tensor, lengths: Tensor) -> DecoderState:
        return Prefix()

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.table[token], state


SOURCE, LENGTHS = torch.tensor([[4, EOS], [5, EOS]]), torch.tensor([2, 2])
