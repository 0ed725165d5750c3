"""The training objective: model and loss in one module."""

import torch
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.kernels.matmul import row_counts_are_compiled
from tolka.losses.chunks import ChunkedLoss, chunk_size, equal_chunk_size
from tolka.losses.consistency import ConsistencyLoss, consistency_gradients
from tolka.losses.cross_entropy import LossSum, smoothed_gradient, token_nll
from tolka.models.base import Seq2Seq


class Objective(nn.Module):
    """Model and loss as one module: Batch -> LossSum.

    Training calls the model only through it, so that DDP, FSDP2 and `torch.compile` see a single forward pass.
    """

    def __init__(
        self,
        model: Seq2Seq,
        label_smoothing: float,
        word_dropout: float = 0.0,
        consistency: ConsistencyLoss | None = None,
    ) -> None:
        """word_dropout: see Batch.with_words_dropped. consistency: the loss of a second pass, if there is one."""
        super().__init__()
        self.model = model
        self.label_smoothing, self.word_dropout, self.consistency = label_smoothing, word_dropout, consistency
        self.second_pass = True  # False skips the second pass of a consistency loss

    def forward(self, batch: Batch) -> LossSum:
        """Compute the loss with teacher forcing; smoothing, word dropout and a second pass in training mode only."""
        # `ChunkedLoss` computes the gradient in its forward pass, which a validation does not need.
        if not torch.is_grad_enabled():
            return self._without_gradient(batch)
        weights = [weight for weight in self.model.logits_parameters() if weight.requires_grad]
        features = [self.model(inputs) for inputs in self._passes(batch)]
        # Both passes' logits are in memory together. Where every new number of rows is compiled, all chunks have one.
        chunk, equal_rows = max(1, chunk_size(self.model, features[0]) // len(features)), row_counts_are_compiled()
        loss, nll = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits,
            self._gradients,
            batch.targets,
            equal_chunk_size(batch.tokens, chunk) if equal_rows else chunk,
            equal_rows,
            len(features),
            *features,
            *weights,
        )
        return LossSum(loss, nll, batch.tokens)

    def _passes(self, batch: Batch) -> list[Batch]:
        """Return the input of each pass; dropped words are drawn for each pass."""
        if not self.training:
            return [batch]
        if self.consistency is None or not self.second_pass:
            return [batch.with_words_dropped(self.word_dropout)]
        # R-Drop's two passes differ by their dropout alone, SimCut's second one also lacks some words.
        second = batch.with_words_dropped(self.consistency.cut)
        return [inputs.with_words_dropped(self.word_dropout) for inputs in (batch, second)]

    def _gradients(self, logits: list[Tensor], targets: Tensor) -> tuple[Tensor, Tensor]:
        smoothing = self.label_smoothing if self.training else 0.0
        if len(logits) == 1:
            return smoothed_gradient(logits[0], targets, smoothing)
        assert self.consistency is not None
        return consistency_gradients(logits[0], logits[1], targets, smoothing, self.consistency)

    def _without_gradient(self, batch: Batch) -> LossSum:
        nll = torch.stack([part.sum() for part in token_nll(self.model, self.model(batch), batch.targets)]).sum()
        return LossSum(nll, nll, batch.tokens)
