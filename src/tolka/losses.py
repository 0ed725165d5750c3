"""Label-smoothed cross-entropy as sums, alone or of two passes that should agree, computed in chunks of tokens.

Shapes: N target tokens, D model width, V vocabulary, C tokens of one chunk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tolka.batch import PAD, Batch
from tolka.models.base import Seq2Seq
from tolka.nn.products import shapes_cost, steady_rows

# One chunk's logits fill about this many values: 16 MB in fp32, which a CPU's last cache level still holds. A GPU has
# no such cache and wants fewer, larger kernels.
_CHUNK_VALUES = 4 * 2**20
_CHUNKS_ON_GPU = 16
# Two passes' gradients take four wide matrices at once, in some twenty operations: on a CPU in blocks of this many
# values, 2 MB in fp32, which stay nearer to it than the whole chunk would.
_AGREEING_VALUES_ON_CPU = 2**19


@dataclass(frozen=True)
class LossSum:
    """Sums over the valid target tokens: means are made once, over the whole accumulation group and all ranks.

    loss: what is minimised, differentiable. nll: -log p(reference), smoothing and agreement left out. Both 0-dim, nats.
    """

    loss: Tensor
    nll: Tensor
    tokens: int


@dataclass(frozen=True)
class Agreement:
    """Two passes over one batch, and what it costs when their distributions p (first) and q (second) differ.

    Loss a token = shares[0] * CE(p) + shares[1] * CE(q) + weights[0] * KL(p || q) + weights[1] * KL(q || p), its
    gradient taken through all of them. cut: share of the words that the second pass does not see.
    """

    shares: tuple[float, float]
    weights: tuple[float, float]
    cut: float = 0.0


def r_drop(weight: float) -> Agreement:
    """R-Drop (Liang et al. 2021, equations 2 and 4): two passes that differ in their dropout.

    Half of the paper's sum, so that the loss stays one of a token: (CE + CE) / 2 + weight / 4 * (KL + KL).
    """
    return Agreement((0.5, 0.5), (weight / 4, weight / 4))


def simcut(weight: float, cut: float) -> Agreement:
    """SimCut (Gao et al. 2022, equation 7): CE + weight * KL(whole || with words cut off, source and target)."""
    return Agreement((1.0, 0.0), (weight, 0.0), cut)


def smoothed_gradient(
    logits: Tensor, targets: Tensor, smoothing: float, counts: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Loss sum and nll sum of one chunk; overwrites `logits` (C, V) with d loss / d logits.

    Loss = (1 - e) * nll + e * mean over the vocabulary of -log p (Szegedy et al. 2016, section 7, uniform prior).
    counts: (C,) true where a token counts at all; None where each does.
    """
    loss, nll, _ = _into_probabilities(logits, targets, smoothing, counts)
    _less_target(logits, targets, smoothing)
    if counts is not None:
        logits.mul_(counts[:, None])
    return loss, nll


def agreement_gradients(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, agreement: Agreement
) -> tuple[Tensor, Tensor]:
    """Loss sum and nll sum of both passes; overwrites `first` and `second` (C, V) with d loss / d logits."""
    rows = max(1, _AGREEING_VALUES_ON_CPU // first.size(1) if first.device.type == "cpu" else targets.numel())
    parts = zip(_pieces(first, rows), _pieces(second, rows), _pieces(targets, rows), strict=True)
    sums = [_agreement_of_rows(p, q, wanted, smoothing, agreement) for p, q, wanted in parts]
    loss, nll = torch.stack([torch.stack(each) for each in sums]).sum(dim=0).unbind()
    return loss, nll


def _agreement_of_rows(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, agreement: Agreement
) -> tuple[Tensor, Tensor]:
    """Loss sum and nll sum; the logits become their gradients.

    With the smoothed target t, d CE(p) / d logits is p - t; d KL(p || q) / d logits is p * (log p - log q - KL) for p
    and q - p for q. Collected by p and q, so that each wide matrix is read as seldom as can be.
    """
    (share_p, share_q), (weight_pq, weight_qp) = agreement.shares, agreement.weights
    difference = first - second
    loss_p, nll_p, log_z_p = _into_probabilities(first, targets, smoothing)
    loss_q, nll_q, log_z_q = _into_probabilities(second, targets, smoothing)
    p, q = first, second
    difference.sub_(log_z_p - log_z_q)  # log p - log q
    kl_pq = torch.linalg.vecdot(p, difference)[:, None]
    kl_qp = -torch.linalg.vecdot(q, difference)[:, None]
    loss = share_p * loss_p + share_q * loss_q + weight_pq * kl_pq.sum() + weight_qp * kl_qp.sum()
    of_p = torch.add(share_p + weight_qp - weight_pq * kl_pq, difference, alpha=weight_pq)
    of_q = torch.add(share_q + weight_pq - weight_qp * kl_qp, difference, alpha=-weight_qp, out=difference)
    of_q.mul_(q).sub_(p, alpha=weight_pq)
    p.mul_(of_p).sub_(q, alpha=weight_qp)
    _less_target(p, targets, smoothing, share_p)
    q.copy_(_less_target(of_q, targets, smoothing, share_q))
    return loss, share_p * nll_p + share_q * nll_q


def _into_probabilities(
    logits: Tensor, targets: Tensor, smoothing: float, counts: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax in place over (C, V); the loss sum, the nll sum and the logarithms of the normalisers, (C, 1)."""
    chosen = logits.gather(1, targets[:, None])
    mean = logits.mean(dim=-1, keepdim=True) if smoothing else chosen
    top = logits.amax(dim=-1, keepdim=True)
    # One exp over the vocabulary serves the normaliser and the gradient; everything wide happens in place.
    normaliser = logits.sub_(top).exp_().sum(dim=-1, keepdim=True)
    logits.div_(normaliser)
    log_z = top + normaliser.log()
    each, dense = log_z - chosen, log_z - mean
    if counts is not None:
        each, dense = each * counts[:, None], dense * counts[:, None]
    nll = each.sum()
    return (1.0 - smoothing) * nll + smoothing * dense.sum(), nll, log_z


def _less_target(gradient: Tensor, targets: Tensor, smoothing: float, share: float = 1.0) -> Tensor:
    """The gradient (C, V), in place, minus `share` of the smoothed target."""
    if share:
        gradient.sub_(share * smoothing / gradient.size(-1))
        gradient[torch.arange(targets.numel(), device=targets.device), targets] -= share * (1.0 - smoothing)
    return gradient


def _chunk(model: Seq2Seq, features: Tensor) -> int:
    """Tokens whose logits are computed at once."""
    values = _CHUNK_VALUES * (1 if features.device.type == "cpu" else _CHUNKS_ON_GPU)
    return max(1, values // model.vocabulary_size)


def _pieces(tensor: Tensor, chunk: int) -> tuple[Tensor, ...]:
    """Views of `chunk` rows each; the last may have fewer."""
    pieces: tuple[Tensor, ...] = torch.split(tensor, chunk)
    return pieces


def _steady_chunk(count: int, chunk: int) -> int:
    """One of few sizes, about `chunk` at most, in which all pieces of `count` tokens can be computed."""
    return steady_rows(-(-count // -(-count // chunk)))


def _fp32_or_wider(x: Tensor) -> Tensor:
    """bf16 and fp16 as fp32; float64, in which tests compare, as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _filled_up(rows: Tensor, count: int) -> Tensor:
    """(C, D), with rows of zeros behind them up to `count`."""
    return F.pad(rows, (0, 0, 0, count - len(rows))) if len(rows) < count else rows


# The logits of each pass and the targets of one chunk -> loss sum, nll sum; the logits become d loss / d logits.
_Gradients = Callable[[list[Tensor], Tensor], tuple[Tensor, Tensor]]


class _GradientGiven(torch.autograd.Function):
    """A number whose gradient with respect to `x` is `gradient`.

    As `torch.autograd.grad` with a gradient of its own, which would import a library for symbols (0.3 s).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, gradient: Tensor) -> Tensor:
        ctx.gradient = gradient
        return x.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.gradient, None


class _ChunkedLoss(torch.autograd.Function):
    """The sums and, in the same pass, their gradients: no (N, V) matrix ever stands in memory.

    inputs: the features (N, D) of each pass, then the output layer's weights, so that autograd hands their gradients on
    (and DDP's hooks fire); the weights must be all that `logits_of` depends on beside the features. steady: whether the
    last piece shall have as many rows as the others, of which the last ones count for nothing.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits_of: Callable[[Tensor], Tensor],
        gradients_of: _Gradients,
        targets: Tensor,
        chunk: int,
        steady: bool,
        passes: int,
        *inputs: Tensor,
    ) -> tuple[Tensor, Tensor]:
        features, parameters = inputs[:passes], inputs[passes:]
        totals = _fp32_or_wider(features[0].new_zeros(2))
        feature_gradients: list[list[Tensor]] = [[] for _ in features]
        weight_gradients = [torch.zeros_like(p) for p in parameters]
        pieces = [_pieces(each, chunk) for each in features]
        for wanted, *rows in zip(_pieces(targets, chunk), *pieces, strict=True):
            count = len(wanted)
            leaves = [_filled_up(row.detach(), chunk if steady else count).requires_grad_() for row in rows]
            with torch.enable_grad():
                logits = [logits_of(leaf) for leaf in leaves]
            upstream = [_fp32_or_wider(each.detach()) for each in logits]
            loss, nll = gradients_of([each[:count] for each in upstream], wanted)
            totals += torch.stack([loss, nll])
            for each in upstream:
                each[count:] = 0.0
            pairs = [(each, gradient.to(each.dtype)) for each, gradient in zip(logits, upstream, strict=True)]
            with torch.enable_grad():
                ends = [_GradientGiven.apply(*pair) for pair in pairs]  # type: ignore[no-untyped-call]
            found = torch.autograd.grad(ends, (*leaves, *parameters))
            for gradients, part in zip(feature_gradients, found, strict=False):
                gradients.append(part[:count])
            for total, part in zip(weight_gradients, found[passes:], strict=True):
                total.add_(part)
        ctx.save_for_backward(*(torch.cat(gradients) for gradients in feature_gradients), *weight_gradients)
        loss_sum, nll_sum = totals.unbind()
        ctx.mark_non_differentiable(nll_sum)
        return loss_sum, nll_sum

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        return (None,) * 6 + tuple(saved * upstream[0] for saved in ctx.saved_tensors)


class Objective(nn.Module):
    """The one module that training wraps: model and loss, Batch -> LossSum.

    Nothing in training calls `logits` outside of it, so that DDP, FSDP2 and `torch.compile` see a single forward.
    """

    def __init__(
        self, model: Seq2Seq, label_smoothing: float, word_dropout: float = 0.0, agreement: Agreement | None = None
    ) -> None:
        """word_dropout: see Batch.with_words_dropped. agreement: train on two passes that should agree."""
        super().__init__()
        self.model = model
        self.label_smoothing, self.word_dropout, self.agreement = label_smoothing, word_dropout, agreement
        self.agreeing = True  # whether the second pass is made

    def forward(self, batch: Batch) -> LossSum:
        """Teacher forcing over the batch; label smoothing, dropped words and a second pass in training mode only."""
        if not torch.is_grad_enabled():
            return self._without_gradient(batch)
        weights = [weight for weight in self.model.logits_parameters() if weight.requires_grad]
        features = [self.model(seen) for seen in self._passes(batch)]
        chunk, steady = max(1, _chunk(self.model, features[0]) // len(features)), shapes_cost()
        loss, nll = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            self.model.logits,
            partial(self._gradients, filled=batch.is_filled),
            batch.targets,
            _steady_chunk(batch.tokens, chunk) if steady else chunk,
            steady,
            len(features),
            *features,
            *weights,
        )
        return LossSum(loss, nll, batch.tokens)

    def _passes(self, batch: Batch) -> list[Batch]:
        """What the model sees, pass by pass; each draws its own dropped words."""
        if not self.training:
            return [batch]
        if self.agreement is None or not self.agreeing:
            return [batch.with_words_dropped(self.word_dropout)]
        second = batch.with_words_dropped(self.agreement.cut)
        return [seen.with_words_dropped(self.word_dropout) for seen in (batch, second)]

    def _gradients(self, logits: list[Tensor], targets: Tensor, filled: bool) -> tuple[Tensor, Tensor]:
        smoothing = self.label_smoothing if self.training else 0.0
        if len(logits) == 1:
            counts = targets != PAD if filled else None
            return smoothed_gradient(logits[0], targets, smoothing, counts)
        assert self.agreement is not None
        assert not filled, "two passes count every target"
        return agreement_gradients(logits[0], logits[1], targets, smoothing, self.agreement)

    def _without_gradient(self, batch: Batch) -> LossSum:
        nll = torch.stack([part.sum() for part in token_nll(self.model, self.model(batch), batch.targets)]).sum()
        return LossSum(nll, nll, batch.tokens)


def token_nll(model: Seq2Seq, features: Tensor, targets: Tensor) -> Iterator[Tensor]:
    """-log p of each reference token, in chunks: features (N, D), targets (N,) -> pieces of (N,), in order."""
    chunk = _chunk(model, features)
    for piece, wanted in zip(_pieces(features, chunk), _pieces(targets, chunk), strict=True):
        logits = _fp32_or_wider(model.logits(piece))
        yield logits.logsumexp(dim=-1) - logits.gather(1, wanted[:, None]).squeeze(1)
