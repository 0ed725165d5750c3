"""The training objective: label-smoothed cross-entropy, as a sum over tokens, in chunks: no (N, V) matrix is in memory.

Shapes: N target tokens, D model width, V vocabulary, C tokens of one chunk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.data.batch import Batch
from tolka.kernels.matmul import rounded_row_count, row_counts_are_compiled
from tolka.models.base import Seq2Seq
from tolka.system.device import device_memory

# One chunk's logits fill about this many values: 16 MB in fp32, which fits a CPU's last-level cache.
_CHUNK_VALUES = 4 * 2**20
_OF_TEACHER = 0.8  # share of a teacher in the loss, beside the references
_GPU_BYTES = 256  # of a GPU's memory for each value, which takes 8 to 12 of them


@dataclass(frozen=True)
class LossSum:
    """Sums over the valid target tokens; the mean is taken once, over the whole accumulation group and all ranks.

    loss: the objective, differentiable. nll: -log p(reference), without smoothing. Both are 0-dim and in nats.
    """

    loss: Tensor
    nll: Tensor
    tokens: int


def chunk_size(model: Seq2Seq, features: Tensor) -> int:
    """Return the number of tokens whose logits are computed at once."""
    # Each chunk reads and writes the gradient of the whole output layer: on a GPU they are as large as memory allows.
    values = max(_CHUNK_VALUES, device_memory(features.device) // _GPU_BYTES)
    return max(1, values // model.vocabulary_size)


def fp32_or_wider(x: Tensor) -> Tensor:
    """Convert bf16 and fp16 to fp32; keep float64, in which tests compare."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def smoothed_gradient(
    logits: Tensor, targets: Tensor, smoothing: float, lessons: Iterator[Tensor] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return loss sum and nll sum of one chunk, and d loss / d logits (C, V); the logits may be overwritten.

    targets: (C,), or fewer, where the other rows are padding.
    Loss = (1 - e) * nll + e * mean over the vocabulary of -log p (Szegedy et al. 2016, section 7, uniform prior).
    lessons: the next ones are a teacher's logits (C, V), whose share is described in `_taught_gradient`.
    """
    if lessons is not None:
        return _taught_gradient(logits, targets, smoothing, next(lessons))
    if logits.device.type != "cpu":
        return _gradient_in_few_passes(logits, targets, smoothing)
    # In fp32 the logits' own memory, in bf16 a copy.
    gradient = fp32_or_wider(logits)
    loss, nll = _overwrite_with_gradient(gradient[: len(targets)], targets, smoothing)
    # Padding rows add nothing to the gradient of the weights.
    gradient[len(targets) :] = 0.0
    return loss, nll, gradient.to(logits.dtype)


def _gradient_in_few_passes(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `smoothed_gradient` as a GPU does it fastest: in 20 bytes of traffic a logit, where 56 were needed."""
    count = logits.size(-1)
    log_p = logits.log_softmax(dim=-1, dtype=torch.float32)
    nll = -log_p.gather(1, targets[:, None]).sum()
    loss = (1.0 - smoothing) * nll - (smoothing / count) * log_p.sum() if smoothing else nll
    # d loss / d logits = p - t, with t = (1 - e) at the reference + e / V everywhere.
    gradient = torch.exp(log_p, out=torch.empty_like(logits)).sub_(smoothing / count)
    gradient[torch.arange(len(targets), device=targets.device), targets] -= 1.0 - smoothing
    return loss, nll, gradient


def _overwrite_with_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return loss sum and nll sum; the logits become their gradient, without another matrix (C, V)."""
    target_logits = logits.gather(1, targets[:, None])
    # Read before softmax overwrites the logits. -log p of all tokens on average is log z - mean(logits).
    mean = logits.mean(dim=-1, keepdim=True) if smoothing else target_logits
    # exp of a logit above 88 would be inf in fp32; less the largest, all are at most 1.
    top = logits.amax(dim=-1, keepdim=True)
    # One exp over the vocabulary serves the normaliser and the gradient; all wide operations are in place.
    normaliser = logits.sub_(top).exp_().sum(dim=-1, keepdim=True)
    # d loss / d logits = p - t, with t = (1 - e) at the reference + e / V everywhere.
    logits.div_(normaliser).sub_(smoothing / logits.size(-1))
    logits[torch.arange(targets.numel(), device=targets.device), targets] -= 1.0 - smoothing
    log_z = top + normaliser.log()
    nll = (log_z - target_logits).sum()
    return (1.0 - smoothing) * nll + smoothing * (log_z - mean).sum(), nll


def _taught_gradient(
    logits: Tensor, targets: Tensor, smoothing: float, lesson: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `smoothed_gradient` of a loss that is learnt from a teacher as well.

    lesson: its logits. Loss = (1 - a) * that of `smoothed_gradient` + a * the cross-entropy with the
    teacher's probabilities (Hinton et al. 2015; Kim and Rush 2016, section 3.1), a = 0.8.
    """
    count = len(targets)
    log_p, taught = (fp32_or_wider(each[:count]).log_softmax(dim=-1) for each in (logits, lesson))
    nll = -log_p.gather(1, targets[:, None]).sum()
    # The sum of both cross-entropies is one, with the mean of what they expect.
    expected = taught.exp_().mul_(_OF_TEACHER).add_((1.0 - _OF_TEACHER) * smoothing / logits.size(-1))
    expected[torch.arange(count, device=targets.device), targets] += (1.0 - _OF_TEACHER) * (1.0 - smoothing)
    loss = -(expected * log_p).sum()
    gradient = log_p.exp_().sub_(expected)
    return loss, nll, F.pad(gradient, (0, 0, 0, len(logits) - count)).to(logits.dtype)


# The logits and the targets of one chunk -> loss sum, nll sum, d loss / d logits.
Gradients = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class ChunkedLoss(torch.autograd.Function):
    """The loss sum and the nll sum; the gradients of the loss sum are computed in the same pass, chunk by chunk.

    weights: the output layer's, which must be all that `logits_of` depends on besides the features (N, D). equal_rows:
    whether the last chunk is padded to as many rows as the others.
    """

    # The weights are inputs so that autograd accumulates their gradients, and DDP's hooks fire.

    @staticmethod
    def forward(
        ctx: Any,
        logits_of: Callable[[Tensor], Tensor],
        gradients_of: Gradients,
        targets: Tensor,
        chunk: int,
        equal_rows: bool,
        features: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        totals = fp32_or_wider(features.new_zeros(2))
        feature_gradients = []
        # In fp32, as many chunks may be added up.
        weight_gradients = [fp32_or_wider(torch.zeros_like(weight)) for weight in weights]
        # The loss is a sum over tokens, so that each chunk's gradient is final at once: its logits are freed before the
        # next chunk's are computed.
        for chunk_targets, rows in zip(targets.split(chunk), features.split(chunk), strict=True):
            count = len(chunk_targets)
            leaf = rows.detach()
            if equal_rows and count < chunk:
                leaf = F.pad(leaf, (0, 0, 0, chunk - count))  # rows of zeros
            leaf.requires_grad_()
            with torch.enable_grad():
                logits = logits_of(leaf)
            loss, nll, upstream = gradients_of(logits.detach(), chunk_targets)
            totals += torch.stack([loss, nll])
            gradient, *of_weights = torch.autograd.grad(logits, (leaf, *weights), upstream)
            feature_gradients.append(gradient[:count])
            for total, gradient in zip(weight_gradients, of_weights, strict=True):
                total.add_(gradient)
        ctx.save_for_backward(torch.cat(feature_gradients), *weight_gradients)
        # Copies, as FSDP takes no views.
        loss_sum, nll_sum = (total.clone() for total in totals)
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        # Computed in `forward` already; what follows the loss, as 1 / tokens, is a factor. None: the first five inputs.
        return (None,) * 5 + tuple(saved * upstream[0] for saved in ctx.saved_tensors)


def token_nll(model: Seq2Seq, features: Tensor, targets: Tensor) -> Iterator[Tensor]:
    """Yield -log p of each reference token, in chunks: features (N, D), targets (N,) -> chunks of (N,), in order."""
    # logsumexp(logits) - logit of the reference, without a second matrix (C, V) for the log-softmax.
    chunk = chunk_size(model, features)
    for chunk_features, chunk_targets in zip(features.split(chunk), targets.split(chunk), strict=True):
        logits = fp32_or_wider(model.logits(chunk_features))
        yield logits.logsumexp(dim=-1) - logits.gather(1, chunk_targets[:, None]).squeeze(1)


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
