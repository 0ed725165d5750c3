"""The training objective: model and loss in one module."""

from functools import partial

import torch
from torch import nn

from tolka.data.batch import Batch
from tolka.kernels.matmul import rounded_row_count, row_counts_are_compiled
from tolka.losses.cross_entropy import ChunkedLoss, LossSum, chunk_size, smoothed_gradient, token_nll
from tolka.models.base import Seq2Seq


class Objective(nn.Module):
    """Model and loss as one module: Batch -> LossSum.

    Training calls the model only through it, so that DDP and FSDP2 see a single forward pass.
    """

    def __init__(self, model: Seq2Seq, label_smoothing: float) -> None:
        """label_smoothing: probability that is spread over the vocabulary."""
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing

    def forward(self, batch: Batch) -> LossSum:
        """Compute the loss with teacher forcing; smoothing in training mode only."""
        # `ChunkedLoss` computes the gradient in its forward pass, which a validation does not need.
        if not torch.is_grad_enabled():
            nll = torch.stack([part.sum() for part in token_nll(self.model, self.model(batch), batch.targets)]).sum()
            return LossSum(nll, nll, batch.tokens)
        weights = [weight for weight in self.model.logits_parameters() if weight.requires_grad]
        features = self.model(batch)
        # Where every new number of rows is compiled, all chunks have one: rounded, and of about that size or less.
        equal_rows = features.device.type == "cpu" and row_counts_are_compiled()
        chunk = chunk_size(self.model, features)
        chunk = rounded_row_count(-(-batch.tokens // -(-batch.tokens // chunk))) if equal_rows else chunk
        loss, nll = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits,
            partial(smoothed_gradient, smoothing=self.label_smoothing if self.training else 0.0),
            batch.targets,
            chunk,
            equal_rows,
            features,
            *weights,
        )
        return LossSum(loss, nll, batch.tokens)
