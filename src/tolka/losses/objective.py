"""The training objective: model and loss in one module."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.kernels.matmul import rounded_row_count, row_counts_are_compiled
from tolka.losses.cross_entropy import ChunkedLoss, LossSum, chunk_size, smoothed_gradient, token_nll
from tolka.models.base import Seq2Seq


class Objective(nn.Module):
    """Model and loss as one module: Batch -> LossSum.

    Training calls the model only through it, so that DDP and FSDP2 see a single forward pass.
    """

    def __init__(self, model: Seq2Seq, label_smoothing: float, teacher: Seq2Seq | None = None) -> None:
        """label_smoothing: probability that is spread over the vocabulary. teacher: whose
        probabilities are learnt beside the references; it stays as it is."""
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing
        # In a tuple it is no part of the module: its weights are neither trained, nor saved, nor shared out.
        self._teachers: tuple[Seq2Seq, ...] = () if teacher is None else (teacher,)

    def forward(self, batch: Batch) -> LossSum:
        """Compute the loss with teacher forcing; smoothing, and the teacher's share, in training mode only."""
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
        smoothing = self.label_smoothing if self.training else 0.0
        lessons = self._lessons(batch, chunk, equal_rows) if self._teachers and self.training else None
        loss, nll = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits,
            partial(smoothed_gradient, smoothing=smoothing, lessons=lessons),
            batch.targets,
            chunk,
            equal_rows,
            features,
            *weights,
        )
        return LossSum(loss, nll, batch.tokens)

    @torch.no_grad()
    def _lessons(self, batch: Batch, chunk: int, equal_rows: bool) -> Iterator[Tensor]:
        """Yield the teacher's logits of each chunk of tokens, with as many rows as the model's."""
        for teacher in self._teachers:
            for rows in teacher(batch).split(chunk):
                yield teacher.logits(F.pad(rows, (0, 0, 0, chunk - len(rows))) if equal_rows else rows)
