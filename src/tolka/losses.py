"""Label-smoothed cross-entropy as sums, computed in chunks of tokens.

Shapes: N target tokens, D model width, V vocabulary, C tokens of one chunk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tolka.batch import Batch
from tolka.models.base import Seq2Seq

# One chunk's logits fill about this many values: 16 MB in fp32, which a CPU's last cache level still holds. A GPU has
# no such cache and wants fewer, larger kernels.
_CHUNK_VALUES = 4 * 2**20
_CHUNKS_ON_GPU = 16


@dataclass(frozen=True)
class LossSum:
    """Sums over the valid target tokens: means are made once, over the whole accumulation group and all ranks.

    loss: with label smoothing, differentiable. nll: -log p(reference), smoothing left out. Both 0-dim, in nats.
    """

    loss: Tensor
    nll: Tensor
    tokens: int


def smoothed_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Loss sum, nll sum and d loss / d logits of one chunk; overwrites `logits` (C, V) with the gradient.

    Loss = (1 - e) * nll + e * mean over the vocabulary of -log p (Szegedy et al. 2016, section 7, uniform prior).
    """
    rows = torch.arange(targets.numel(), device=targets.device)
    chosen = logits[rows, targets]
    mean = logits.mean(dim=-1) if smoothing > 0.0 else chosen
    top = logits.amax(dim=-1, keepdim=True)
    # One exp over the vocabulary serves the normaliser and the gradient; everything wide happens in place.
    exponentials = logits.sub_(top).exp_()
    normaliser = exponentials.sum(dim=-1, keepdim=True)
    log_z = (top + normaliser.log()).squeeze(-1)
    nll = (log_z - chosen).sum()
    loss = (1.0 - smoothing) * nll + smoothing * (log_z - mean).sum()
    gradient = exponentials.div_(normaliser).sub_(smoothing / logits.size(-1))
    gradient[rows, targets] -= 1.0 - smoothing
    return loss, nll, gradient


def _chunk(model: Seq2Seq, features: Tensor) -> int:
    """Tokens whose logits are computed at once."""
    values = _CHUNK_VALUES * (1 if features.device.type == "cpu" else _CHUNKS_ON_GPU)
    return max(1, values // model.vocabulary_size)


def _pieces(tensor: Tensor, chunk: int) -> tuple[Tensor, ...]:
    """Views of `chunk` rows each; the last may have fewer."""
    pieces: tuple[Tensor, ...] = torch.split(tensor, chunk)
    return pieces


class _ChunkedLoss(torch.autograd.Function):
    """The sums and, in the same pass, their gradients: no (N, V) matrix ever stands in memory.

    Inputs after `parameters` are the output layer's weights, so that autograd hands their gradients on (and DDP's
    hooks fire); they must be all that `logits_of` depends on beside the features.
    """

    @staticmethod
    def forward(
        ctx: Any, logits_of: Callable[[Tensor], Tensor], targets: Tensor, smoothing: float, chunk: int, *inputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        features, parameters = inputs[0], inputs[1:]
        totals = torch.zeros(2, device=features.device)
        feature_gradients: list[Tensor] = []
        weight_gradients = [torch.zeros_like(p) for p in parameters]
        for piece, wanted in zip(_pieces(features, chunk), _pieces(targets, chunk), strict=True):
            leaf = piece.detach().requires_grad_()
            with torch.enable_grad():
                logits = logits_of(leaf)
            loss, nll, gradient = smoothed_gradient(logits.detach().float(), wanted, smoothing)
            totals += torch.stack([loss, nll])
            leaf_gradient, *pieces = torch.autograd.grad(logits, (leaf, *parameters), gradient.to(logits.dtype))
            feature_gradients.append(leaf_gradient)
            for total, part in zip(weight_gradients, pieces, strict=True):
                total.add_(part)
        ctx.save_for_backward(torch.cat(feature_gradients), *weight_gradients)
        loss_sum, nll_sum = totals.unbind()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        return (None, None, None, None, *(saved * upstream[0] for saved in ctx.saved_tensors))


class Objective(nn.Module):
    """The one module that training wraps: model and loss, Batch -> LossSum.

    Nothing in training calls `logits` outside of it, so that DDP, FSDP2 and `torch.compile` see a single forward.
    """

    def __init__(self, model: Seq2Seq, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch) -> LossSum:
        """Teacher forcing over the batch; label smoothing in training mode only."""
        features: Tensor = self.model(batch)
        if not torch.is_grad_enabled():
            return self._without_gradient(features, batch)
        weights = self.model.logits_parameters()
        chunk = _chunk(self.model, features)
        smoothing = self.label_smoothing if self.training else 0.0
        loss, nll = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits, batch.targets, smoothing, chunk, features, *weights
        )
        return LossSum(loss, nll, batch.tokens)

    def _without_gradient(self, features: Tensor, batch: Batch) -> LossSum:
        nll = torch.stack([part.sum() for part in token_nll(self.model, features, batch.targets)]).sum()
        return LossSum(nll, nll, batch.tokens)


def token_nll(model: Seq2Seq, features: Tensor, targets: Tensor) -> Iterator[Tensor]:
    """-log p of each reference token, in chunks: features (N, D), targets (N,) -> pieces of (N,), in order."""
    chunk = _chunk(model, features)
    for piece, wanted in zip(_pieces(features, chunk), _pieces(targets, chunk), strict=True):
        logits = model.logits(piece).float()
        yield logits.logsumexp(dim=-1) - logits.gather(1, wanted[:, None]).squeeze(1)
