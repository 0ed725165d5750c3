"""Consistency losses: two passes over one batch, and what it costs when their distributions differ.

Shapes: C tokens of one chunk, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.losses.chunks import split_rows
from tolka.losses.cross_entropy import softmax_in_place, subtract_target

# Two passes' gradients take four wide matrices at once, in some twenty operations: on a CPU in blocks of this many
# values, 2 MB in fp32, which stay nearer to it than the whole chunk would.
_VALUES_PER_BLOCK_ON_CPU = 2**19


@dataclass(frozen=True)
class ConsistencyLoss:
    """Weights of the losses of two passes over one batch, with distributions p (first) and q (second).

    Loss per token = shares[0] * CE(p) + shares[1] * CE(q) + weights[0] * KL(p

    q) + weights[1] * KL(q

    p), differentiated through all terms. cut: share of the words that the second pass does not see.
    """

    shares: tuple[float, float]
    weights: tuple[float, float]
    cut: float = 0.0


def r_drop(weight: float) -> ConsistencyLoss:
    """R-Drop (Liang et al. 2021, equations 2 and 4): two passes with different dropout.

    Half of the paper's sum, so that the loss stays per token: (CE + CE) / 2 + weight / 4 * (KL + KL).
    """
    return ConsistencyLoss((0.5, 0.5), (weight / 4, weight / 4))


def simcut(weight: float, cut: float) -> ConsistencyLoss:
    """SimCut (Gao et al. 2022, equation 7): CE + weight * KL(whole || with words cut off, source and target)."""
    return ConsistencyLoss((1.0, 0.0), (weight, 0.0), cut)


def consistency_gradients(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, consistency: ConsistencyLoss
) -> tuple[Tensor, Tensor]:
    """Return loss sum and nll sum of both passes; overwrites `first` and `second` (C, V) with d loss / d logits."""
    rows = max(1, _VALUES_PER_BLOCK_ON_CPU // first.size(1) if first.device.type == "cpu" else targets.numel())
    parts = zip(split_rows(first, rows), split_rows(second, rows), split_rows(targets, rows), strict=True)
    sums = [_consistency_of_rows(p, q, wanted, smoothing, consistency) for p, q, wanted in parts]
    loss, nll = torch.stack([torch.stack(each) for each in sums]).sum(dim=0).unbind()
    return loss, nll


def _consistency_of_rows(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, consistency: ConsistencyLoss
) -> tuple[Tensor, Tensor]:
    """Return loss sum and nll sum; the logits become their gradients.

    With the smoothed target t, d CE(p) / d logits is p - t; d KL(p || q) / d logits is p * (log p - log q - KL) for p
    and q - p for q. Collected by p and q, so that each wide matrix is read as seldom as can be.
    """
    (share_p, share_q), (weight_pq, weight_qp) = consistency.shares, consistency.weights
    difference = first - second
    loss_p, nll_p, log_z_p = softmax_in_place(first, targets, smoothing)
    loss_q, nll_q, log_z_q = softmax_in_place(second, targets, smoothing)
    p, q = first, second
    difference.sub_(log_z_p - log_z_q)  # log p - log q
    kl_pq = torch.linalg.vecdot(p, difference)[:, None]
    kl_qp = -torch.linalg.vecdot(q, difference)[:, None]
    loss = share_p * loss_p + share_q * loss_q + weight_pq * kl_pq.sum() + weight_qp * kl_qp.sum()
    of_p = torch.add(share_p + weight_qp - weight_pq * kl_pq, difference, alpha=weight_pq)
    of_q = torch.add(share_q + weight_pq - weight_qp * kl_qp, difference, alpha=-weight_qp, out=difference)
    of_q.mul_(q).sub_(p, alpha=weight_pq)
    p.mul_(of_p).sub_(q, alpha=weight_qp)
    subtract_target(p, targets, smoothing, share_p)
    q.copy_(subtract_target(of_q, targets, smoothing, share_q))
    return loss, share_p * nll_p + share_q * nll_q
