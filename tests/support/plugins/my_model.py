"""A user's own architecture in one file: the mean of the source's embeddings, read by a decoder of one GRU cell."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from tolka.data.batch import PAD, Batch
from tolka.models.base import MODELS, DecoderState, ModelConfig, Seq2Seq


@dataclass(frozen=True)
class MeanState(DecoderState):
    """The decoder's hidden state (B * k, D)."""

    hidden: Tensor

    def select(self, rows: Tensor) -> Self:
        """Keep the rows (B', k')."""
        return type(self)(self.hidden[rows.flatten()])


class MeanModel(Seq2Seq):
    """A bag of words in, a sentence out."""

    def __init__(self, width: int, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.vocabulary_size, self.feature_size = target_vocabulary, width
        self.source = nn.Embedding(source_vocabulary, width, padding_idx=PAD)
        self.target = nn.Embedding(target_vocabulary, width, padding_idx=PAD)
        self.cell = nn.GRUCell(width, width)
        self.output = nn.Linear(width, target_vocabulary)

    def forward(self, batch: Batch) -> Tensor:
        """Return the features (N, D) of the valid target tokens."""
        state, features = self.start(batch.source, batch.source_lengths), []
        for t in range(batch.target_in.size(1)):
            feature, state = self.step(batch.target_in[:, t : t + 1], state)
            features.append(feature[:, 0])
        return batch.valid(torch.stack(features, dim=1))

    def logits(self, features: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        scores: Tensor = self.output(features)
        return scores

    def logits_parameters(self) -> list[nn.Parameter]:
        """Return what `logits` reads."""
        return list(self.output.parameters())

    def start(self, source: Tensor, lengths: Tensor) -> MeanState:
        """Return the mean of the embeddings as the first state."""
        return MeanState(self.source(source).sum(dim=1) / lengths[:, None])

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, MeanState]:
        """(B, k) -> (B, k, D)."""
        assert isinstance(state, MeanState)
        hidden = self.cell(self.target(token).flatten(0, 1), state.hidden)
        return hidden.view(*token.shape, -1), MeanState(hidden)


@MODELS.register("mean")
@dataclass(frozen=True)
class MeanConfig(ModelConfig):
    """Options of the model."""

    name: str = "mean"
    """the architecture: mean"""

    def build(self, source_vocabulary: int, target_vocabulary: int, shared: bool) -> MeanModel:
        """Return a fresh model."""
        return MeanModel(self.d_model, source_vocabulary, target_vocabulary)


PRESETS = {"mean": MeanConfig(), "mean_wide": MeanConfig(d_model=48)}
