"""Embeddings of which the rows of new subwords alone are trained."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.models.embeddings import VOCABULARY_TENSORS, TokenEmbedding
from tolka.nn.lora import Adapted


class NewRows(TokenEmbedding, Adapted):
    """An embedding of which the last rows alone are trained: W, and a change of these rows, at first 0."""

    def __init__(self, embedding: nn.Embedding, count: int) -> None:
        """embedding: whose weight is taken over, and frozen. count: of the rows that are trained."""
        rows, width = embedding.weight.shape
        super().__init__(rows, width, embedding.padding_idx, _weight=embedding.weight)
        self.weight = embedding.weight.requires_grad_(False)
        self.lora_rows = nn.Parameter(embedding.weight.new_zeros(count, embedding.embedding_dim))
        self.old = embedding.num_embeddings - count

    def forward(self, input: Tensor) -> Tensor:
        """(...) -> (..., D)."""
        # Old ids read a row of zeros before the others.
        changes = F.pad(self.lora_rows, (0, 0, 1, 0))
        return super().forward(input) + F.embedding((input - self.old + 1).clamp(min=0), changes)

    def scores(self, features: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., D) -> (..., V)."""
        return super().scores(features, bias) + F.pad(F.linear(features, self.lora_rows), (self.old, 0))

    def merged(self) -> Tensor:
        """Return the plain embedding's weight (V, D), the change of its last rows added."""
        with torch.no_grad():
            return self.weight + F.pad(self.lora_rows, (0, 0, self.old, 0))


def train_new_rows(model: nn.Module, source: int, target: int) -> None:
    """Train the last rows of frozen embeddings. source, target: numbers of new subwords in each vocabulary."""
    replaced: dict[nn.Module, NewRows] = {}
    for tensor in VOCABULARY_TENSORS:
        name, count = tensor.removesuffix(".weight"), source if tensor == VOCABULARY_TENSORS[0] else target
        embedding = getattr(model, name, None)
        if count and isinstance(embedding, nn.Embedding) and not embedding.weight.requires_grad:
            # One that is shared stays one.
            setattr(model, name, replaced.setdefault(embedding, NewRows(embedding, count)))
