"""What searches share; `options/base.py` has the contract of a search.

Shapes: B sentences, k hypotheses a sentence, V vocabulary, c candidates a sentence.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.data.batch import BOS, PAD
from tolka.models.base import Seq2Seq
from tolka.search.options.base import SEARCHES as SEARCHES
from tolka.search.options.base import Search as Search
from tolka.search.options.base import SearchConfig as SearchConfig
from tolka.search.options.base import Selection as Selection

NEVER = float("-inf")  # the log-probability of what is impossible


@dataclass(frozen=True)
class Candidates:
    """A sentence's most likely hypotheses that are one token longer, best first, (B, c) each.

    log_probability: of all tokens. parent: which of the k hypotheses is extended. token: by which token.
    """

    log_probability: Tensor
    parent: Tensor
    token: Tensor


def next_log_probabilities(model: Seq2Seq, features: Tensor) -> Tensor:
    """features (B, k, D) -> (B, k, V), the next token's log-probabilities in fp32; -inf for `<pad>` and `<s>`."""
    log_p = _log_softmax(model.logits(features))
    for symbol in (PAD, BOS):
        log_p[..., symbol] = NEVER
    return log_p


def extensions(log_p: Tensor, total: Tensor, count: int) -> Candidates:
    """Return the `count` largest sums of the next tokens' log_p (B, k, V) and total (B, k), or all if fewer."""
    return Candidates(*_largest(log_p, total, count, _GROUPS))


def _log_softmax(logits: Tensor) -> Tensor:
    """Compute log-softmax over the last dimension in fp32; on a CPU in place, which is 1.2 to 1.3 times as fast."""
    if torch.is_grad_enabled() or logits.dtype != torch.float32 or logits.device.type != "cpu":
        return logits.log_softmax(dim=-1, dtype=torch.float32)
    return torch.log_softmax(logits, dim=-1, out=logits)


def most_likely_token(model: Seq2Seq, features: Tensor) -> tuple[Tensor, Tensor]:
    """(B, 1, D) -> (B, 1), (B, 1): the largest logit and its token, never `<pad>` or `<s>`; nothing is normalised.

    Where logits are NaN or inf, so is the largest.
    """
    logits = model.logits(features)[:, 0]
    for symbol in (PAD, BOS):
        logits[:, symbol] = NEVER
    return _maximum(logits, _GROUPS)


_GROUPS = 256


def _maximum(logits: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """(B, V) -> (B, 1), (B, 1): each row's maximum and its column, in two steps as in `_largest`."""
    vocabulary = logits.size(1)
    groups = min(groups, vocabulary)
    group = _maxima(logits, groups).argmax(dim=1, keepdim=True)
    column = (group + torch.arange(0, vocabulary, groups, device=group.device)).clamp_(max=vocabulary - 1)
    largest, place = logits.gather(1, column).max(dim=1, keepdim=True)
    return largest, column.gather(1, place)


def _maxima(scores: Tensor, groups: int) -> Tensor:
    """(..., V) -> (..., groups): the maximum of each group; column v belongs to group v % groups."""
    rounds, rest = scores.size(-1) // groups, scores.size(-1) % groups
    maxima = scores[..., : rounds * groups].view(*scores.shape[:-1], rounds, groups).amax(dim=-2)
    if rest:
        last = scores[..., rounds * groups :]
        maxima = torch.cat([torch.maximum(maxima[..., :rest], last), maxima[..., rest:]], dim=-1)
    return maxima


def _largest(log_p: Tensor, total: Tensor, count: int, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `count` largest sums of log_p (B, k, V) + total (B, k), their rows and columns, (B, count) each.

    In two steps, as `topk` over all k * V is slower than the output layer's softmax: the largest `count` are among
    the `count` groups of columns with the largest maxima.
    """
    vocabulary = log_p.size(-1)
    groups = min(groups, vocabulary)
    sums = (_maxima(log_p, groups) + total[..., None]).flatten(1)
    chosen = sums.topk(min(count, sums.size(1)), dim=1, sorted=False).indices[..., None]  # (B, c, 1)
    row, group = chosen // groups, chosen % groups
    column = group + torch.arange(0, vocabulary, groups, device=log_p.device)  # (B, c, rounds)
    outside = column >= vocabulary
    column = column.clamp(max=vocabulary - 1)
    indices = (row * vocabulary + column).flatten(1)
    values = log_p.flatten(1).gather(1, indices).view_as(column) + total.gather(1, row[..., 0])[..., None]
    best = values.masked_fill(outside, NEVER).flatten(1).topk(min(count, log_p[0].numel()), dim=1)
    rows = row.expand_as(column).flatten(1).gather(1, best.indices)
    return best.values, rows, column.flatten(1).gather(1, best.indices)


def active_rows(active: Tensor) -> Tensor:
    """(B,) bool -> (B',): the numbers of the active rows.

    On a CPU the last of them fill the gaps of the finished ones and all others keep their places, so that
    `DecoderState.select` copies little.
    """
    if active.device.type != "cpu":
        return active.nonzero()[:, 0]
    count = int(active.sum())
    rows = torch.arange(count)
    rows[~active[:count]] = count + active[count:].nonzero()[:, 0]
    return rows


def first_tokens(sentences: int, device: torch.device) -> Tensor:
    """Return (B, 1): the `<s>` that every hypothesis starts with."""
    return torch.full((sentences, 1), BOS, dtype=torch.long, device=device)
