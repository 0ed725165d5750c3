"""The contract of searches, and what they share.

Shapes: B sentences, k hypotheses a sentence, V vocabulary, c candidates a sentence.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from tolka.data.batch import BOS, PAD
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_most
from tolka.options.registry import Registry

_LONGEST = 10**6  # pieces, or times a source's


@dataclass(frozen=True)
class Hypothesis:
    """One translation. tokens: ids without `<s>` and `</s>`. log_probability: of all tokens, `</s>` included, in nats.

    score: what hypotheses are ranked by. finished: whether `</s>` was reached before the length limit. Both numbers are
    NaN where they were neither asked for nor needed.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool


@dataclass(frozen=True)
class SearchConfig(ABC):
    """Options that every search has."""

    RESUMABLE: ClassVar[bool] = True

    max_length_factor: float = 2.0
    """a translation may have this many times the source's tokens (and at least one) ..."""
    max_length_extra: int = 20
    """... plus this many"""

    def __post_init__(self) -> None:
        if self.max_length_factor < 0 or self.max_length_extra < 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra must be 0 or more")
        if self.max_length_factor == 0 and self.max_length_extra == 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra are both 0: nothing could be said")
        at_most(self, "search", _LONGEST, "max_length_factor", "max_length_extra")

    @property
    @abstractmethod
    def width(self) -> int:
        """Hypotheses per sentence: memory and time grow with it."""

    @abstractmethod
    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True) -> list[list[Hypothesis]]:
        """Translate a padded batch: source (B, S), lengths (B,) with `</s>` -> per sentence, best hypothesis first.

        scored: whether its numbers are asked for, beside its tokens.
        """

    def limits(self, lengths: Tensor) -> Tensor:
        """Return (B,): how many tokens, `</s>` included, each sentence's translation may have."""
        # In whole numbers, as the factor is written: in float32 0.3 * 50 is above 15, in float64 1.1 * 10 above 11.
        factor = Fraction(str(self.max_length_factor)).limit_denominator(10**6)
        times = -(-lengths * factor.numerator // factor.denominator)  # rounded up
        return times.clamp(min=1) + self.max_length_extra


@dataclass(frozen=True)
class Candidates:
    """The most likely extensions of a sentence's hypotheses, best first, (B, c) each.

    log_probability: of all tokens. parent: which of the k hypotheses is extended. token: with which token.
    """

    log_probability: Tensor
    parent: Tensor
    token: Tensor


def most_likely(model: Seq2Seq, features: Tensor, total: Tensor, count: int) -> Candidates:
    """Return the `count` most likely extensions by one token; `<pad>` and `<s>` are excluded.

    features (B, k, D), total (B, k): log-probabilities of the hypotheses so far. In fp32, whatever the model has.
    """
    log_p = _log_softmax(model.logits(features))  # (B, k, V)
    for symbol in (PAD, BOS):
        log_p[..., symbol] = float("-inf")
    return Candidates(*_largest(log_p, total, count, _GROUPS))


def _log_softmax(logits: Tensor) -> Tensor:
    """Return log_softmax over the last dimension in fp32; on a CPU in place, which is 1.2 to 1.3 times as fast."""
    if torch.is_grad_enabled() or logits.dtype != torch.float32 or logits.device.type != "cpu":
        return logits.log_softmax(dim=-1, dtype=torch.float32)
    return torch.log_softmax(logits, dim=-1, out=logits)


def most_likely_token(model: Seq2Seq, features: Tensor) -> Tensor:
    """(B, 1, D) -> (B, 1): the token with the largest logit, without normalising; not `<pad>` or `<s>`."""
    logits = model.logits(features)[:, 0]
    for symbol in (PAD, BOS):
        logits[:, symbol] = float("-inf")
    found: Tensor = _column_of_largest(logits, _GROUPS)
    return found


_GROUPS = 256


def _column_of_largest(logits: Tensor, groups: int) -> Tensor:
    """(B, V) -> (B, 1): the argmax, in two steps as in `_largest`."""
    vocabulary = logits.size(1)
    groups = min(groups, vocabulary)
    group = _maxima(logits, groups).argmax(dim=1, keepdim=True)
    column = (group + torch.arange(0, vocabulary, groups, device=group.device)).clamp_(max=vocabulary - 1)
    return column.gather(1, logits.gather(1, column).argmax(dim=1, keepdim=True))


def _maxima(scores: Tensor, groups: int) -> Tensor:
    """(..., V) -> (..., groups): the maximum of every group of columns, column c being in group c % groups."""
    turns, rest = scores.size(-1) // groups, scores.size(-1) % groups
    maxima = scores[..., : turns * groups].view(*scores.shape[:-1], turns, groups).amax(dim=-2)
    if rest:
        last = scores[..., turns * groups :]
        maxima = torch.cat([torch.maximum(maxima[..., :rest], last), maxima[..., rest:]], dim=-1)
    return maxima


def _largest(log_p: Tensor, total: Tensor, count: int, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `count` largest of log_p (B, k, V) + total (B, k) per sentence, with their rows and columns, (B,
    count).

    In two steps, because `topk` over all k * V takes longer than the output layer's softmax: the largest `count` are
    among the `count` groups of columns with the largest maxima.
    """
    vocabulary = log_p.size(-1)
    groups = min(groups, vocabulary)
    sums = (_maxima(log_p, groups) + total[..., None]).flatten(1)
    chosen = sums.topk(min(count, sums.size(1)), dim=1, sorted=False).indices[..., None]  # (B, c, 1)
    row, group = chosen // groups, chosen % groups
    column = group + torch.arange(0, vocabulary, groups, device=log_p.device)  # (B, c, turns)
    outside = column >= vocabulary
    column = column.clamp(max=vocabulary - 1)
    places = (row * vocabulary + column).flatten(1)
    values = log_p.flatten(1).gather(1, places).view_as(column) + total.gather(1, row[..., 0])[..., None]
    found = values.masked_fill(outside, float("-inf")).flatten(1)
    best = found.topk(min(count, log_p[0].numel()), dim=1)
    rows = row.expand_as(column).flatten(1).gather(1, best.indices)
    return best.values, rows, column.flatten(1).gather(1, best.indices)


def compacted(stays: Tensor) -> Tensor:
    """(B,) bool -> (B',): the numbers of the active sentences, in an order that lets `DecoderState.select` copy little.

    On a CPU the last ones among them fill the gaps of those that leave, and all others keep their places.
    """
    if stays.device.type != "cpu":
        return stays.nonzero()[:, 0]
    count = int(stays.sum())
    numbers = torch.arange(count)
    numbers[~stays[:count]] = count + stays[count:].nonzero()[:, 0]
    return numbers


def first_tokens(sentences: int, device: torch.device) -> Tensor:
    """Return (B, 1): the `<s>` that every hypothesis starts from."""
    return torch.full((sentences, 1), BOS, dtype=torch.long, device=device)


SEARCHES: Registry[SearchConfig] = Registry("search", "tolka.search")
