"""The training objective: model and loss in one module."""

from functools import partial

import torch
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.kernels.matmul import row_counts_are_compiled
from tolka.losses.chunks import ChunkedLoss, Gradients, chunk_size, equal_chunk_size
from tolka.losses.cross_entropy import LossSum, smoothed_gradient, taught_gradient, token_nll
from tolka.models.base import Seq2Seq


class Objective(nn.Module):
    """Model and loss as one module: Batch -> LossSum.

    Training calls the model only through it, so that DDP and FSDP2 see a single forward pass.
    """

    def __init__(
        self, model: Seq2Seq, label_smoothing: float, teacher: Seq2Seq | None = None, teacher_weight: float = 0.0
    ) -> None:
        """label_smoothing: probability that is spread over the vocabulary. teacher: a model of the same vocabulary,
        whose probabilities are learnt as well. teacher_weight: their share of the loss.
        """
        super().__init__()
        self.model, self.label_smoothing, self.teacher_weight = model, label_smoothing, teacher_weight
        # Not as a module of this one, whose weights are trained and shared out.
        self._teacher = [teacher.eval().requires_grad_(False)] if teacher else []

    def forward(self, batch: Batch) -> LossSum:
        """Compute the loss with teacher forcing; smoothing in training mode only."""
        # `ChunkedLoss` computes the gradient in its forward pass, which a validation does not need.
        if not torch.is_grad_enabled():
            return self._without_gradient(batch)
        weights = [weight for weight in self.model.logits_parameters() if weight.requires_grad]
        features = self.model(batch)
        # Where every new number of rows is compiled, all chunks have one.
        chunk, equal_rows = chunk_size(self.model, features), row_counts_are_compiled()
        chunk = equal_chunk_size(batch.tokens, chunk) if equal_rows else chunk
        loss, nll = ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits,
            self._gradients(batch, chunk),
            batch.targets,
            chunk,
            equal_rows,
            features,
            *weights,
        )
        return LossSum(loss, nll, batch.tokens)

    def _gradients(self, batch: Batch, chunk: int) -> Gradients:
        """Return what computes the gradients of a batch's chunks, one after the other."""
        smoothing = self.label_smoothing if self.training else 0.0
        if not self._teacher:
            return partial(smoothed_gradient, smoothing=smoothing)
        (teacher,) = self._teacher
        with torch.no_grad():
            parts = iter(teacher(batch).split(chunk))

        def gradient(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
            of_teacher = teacher.logits(next(parts))
            return taught_gradient(logits, targets, smoothing, of_teacher, self.teacher_weight)

        return gradient

    def _without_gradient(self, batch: Batch) -> LossSum:
        nll = torch.stack([part.sum() for part in token_nll(self.model, self.model(batch), batch.targets)]).sum()
        return LossSum(nll, nll, batch.tokens)
