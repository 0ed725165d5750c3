"""Consistency losses: two passes over one batch, penalised where their distributions differ.

Shapes: C tokens of one chunk, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.losses.chunks import split_rows
from tolka.losses.cross_entropy import softmax_in_place, subtract_target

# The gradients of two passes take some twenty operations on four (C, V) matrices: on a CPU in blocks of this many
# values, 2 MB in fp32, which fit a faster cache than the whole chunk does.
_VALUES_PER_BLOCK_ON_CPU = 2**19


@dataclass(frozen=True)
class ConsistencyLoss:
    """The weights of a loss over two passes whose distributions are p (first) and q (second).

    Loss per token = shares[0] * CE(p) + shares[1] * CE(q) + weights[0] * KL(p || q) + weights[1] * KL(q || p), its
    gradient taken through all of them. cut: share of the words hidden from the second pass.
    """

    shares: tuple[float, float]
    weights: tuple[float, float]
    cut: float = 0.0


def r_drop(weight: float) -> ConsistencyLoss:
    """R-Drop (Liang et al. 2021, equations 2 and 4): two passes with different dropout."""
    # (CE + CE) / 2 + weight / 4 * (KL + KL): half of the paper's sum, so that the scale stays that of one token's loss.
    return ConsistencyLoss((0.5, 0.5), (weight / 4, weight / 4))


def simcut(weight: float, cut: float) -> ConsistencyLoss:
    """SimCut (Gao et al. 2022, equation 7): CE + weight * KL(whole || with words cut off, source and target)."""
    return ConsistencyLoss((1.0, 0.0), (weight, 0.0), cut)


def consistency_gradients(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, consistency: ConsistencyLoss
) -> tuple[Tensor, Tensor]:
    """Return loss sum and nll sum of both passes; overwrite `first` and `second` (C, V) with d loss / d logits."""
    rows = max(1, _VALUES_PER_BLOCK_ON_CPU // first.size(1) if first.device.type == "cpu" else targets.numel())
    blocks = zip(split_rows(first, rows), split_rows(second, rows), split_rows(targets, rows), strict=True)
    sums = [_gradients_of_rows(p, q, t, smoothing, consistency) for p, q, t in blocks]
    loss, nll = torch.stack([torch.stack(each) for each in sums]).sum(dim=0).unbind()
    return loss, nll


def _gradients_of_rows(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, consistency: ConsistencyLoss
) -> tuple[Tensor, Tensor]:
    """Return loss sum and nll sum; overwrite the logits with their gradients."""
    # With the smoothed target t, d CE(p) / d logits is p - t; d KL(p || q) / d logits is p * (log p - log q - KL) for p
    # and q - p for q. Terms are collected by p and q, so that each wide matrix is read as rarely as possible.
    (share_p, share_q), (weight_pq, weight_qp) = consistency.shares, consistency.weights
    difference = first - second
    loss_p, nll_p, log_z_p = softmax_in_place(first, targets, smoothing)
    loss_q, nll_q, log_z_q = softmax_in_place(second, targets, smoothing)
    p, q = first, second
    # log p - log q, from the difference of the logits: log 0 cannot occur.
    difference.sub_(log_z_p - log_z_q)
    kl_pq = torch.linalg.vecdot(p, difference)[:, None]
    kl_qp = -torch.linalg.vecdot(q, difference)[:, None]
    loss = share_p * loss_p + share_q * loss_q + weight_pq * kl_pq.sum() + weight_qp * kl_qp.sum()
    p_factor = torch.add(share_p + weight_qp - weight_pq * kl_pq, difference, alpha=weight_pq)
    q_factor = torch.add(share_q + weight_pq - weight_qp * kl_qp, difference, alpha=-weight_qp, out=difference)
    q_factor.mul_(q).sub_(p, alpha=weight_pq)
    p.mul_(p_factor).sub_(q, alpha=weight_qp)
    subtract_target(p, targets, smoothing, share_p)
    q.copy_(subtract_target(q_factor, targets, smoothing, share_q))
    return loss, share_p * nll_p + share_q * nll_q
