"""The contract of a search and its options, and what searches share.

Shapes: B sentences, k hypotheses a sentence, V vocabulary, c candidates a sentence.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from tolka.data.batch import BOS, PAD
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.options.registry import Registry
from tolka.options.settings import setting
from tolka.search.hypothesis import Hypothesis, Rendered, Wish
from tolka.system.surrogates import printable

NEVER = float("-inf")  # the log-probability of what is impossible
_MAX_LENGTH = 10**6  # subwords, or a factor of the source's
_MAX_PENALTY = 100.0


@dataclass(frozen=True)
class SearchConfig(ABC):
    """Options that every search has."""

    RESUMABLE: ClassVar[bool] = True
    MEETS_TERMS: ClassVar[bool] = False
    """Whether the search considers the terms of a wish."""

    max_length_factor: float = 2.0
    """a translation may have this many times the source's subwords (and at least one) ..."""
    max_length_extra: int = 20
    """... plus this many"""
    min_length: int = 0
    """a translation has at least this many subwords, if the limit above allows them ..."""
    min_length_factor: float = 0.0
    """... and at least this many times the source's"""
    no_repeat_ngram: int = 0
    """no sequence of this many subwords appears twice in a translation; 0 = off"""
    repetition_penalty: float = 1.0
    """the log-probability of a subword that the translation has already is multiplied by it; 1 = off"""
    glossary: str = setting("", literal=True, any_bytes=True)
    """file of terms and their translations (TSV or TBX), for beam search; see glossary_mode"""
    banned: str = setting("", literal=True, any_bytes=True)
    """file of words and phrases that translations must not contain, one a line"""

    def __post_init__(self) -> None:
        if self.glossary and not self.MEETS_TERMS:
            raise ConfigError(f"search.glossary ({printable(self.glossary)}) needs beam search: set search=beam")
        if self.max_length_factor < 0 or self.max_length_extra < 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra must be 0 or more")
        if self.max_length_factor == 0 and self.max_length_extra == 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra are both 0: nothing could be said")
        at_most(self, "search", _MAX_LENGTH, "max_length_factor", "max_length_extra")
        zero_or_more(self, "search", "off", "min_length", "min_length_factor", "no_repeat_ngram")
        at_most(self, "search", _MAX_LENGTH, "min_length", "min_length_factor", "no_repeat_ngram")
        at_least(self, "search", 1, "repetition_penalty")
        at_most(self, "search", _MAX_PENALTY, "repetition_penalty")

    @property
    @abstractmethod
    def width(self) -> int:
        """Hypotheses kept per sentence; memory and time are proportional to it."""

    @property
    def returned(self) -> int:
        """Hypotheses returned per sentence, at most."""
        return 1

    @property
    def candidate_count(self) -> int:
        """Hypotheses that the search finds per sentence, at most: more than `returned` if there is a selection."""
        return self.returned

    @abstractmethod
    def build(self) -> "Search":
        """Return the search with these options."""

    def selection(self, language: str) -> "Selection | None":
        """Return what chooses among the hypotheses found by their texts; None if these are as wanted.

        language: the code of the target language.
        """
        return None

    def limits(self, lengths: Tensor) -> Tensor:
        """Return (B,): how many tokens, `</s>` included, each sentence's translation may have.

        lengths: (B,) of the sources, `</s>` included.
        """
        return _times(lengths, self.max_length_factor).clamp(min=1) + self.max_length_extra

    @property
    def has_minimum(self) -> bool:
        """Whether translations have a minimum length."""
        return self.min_length > 0 or self.min_length_factor > 0

    def minima(self, lengths: Tensor) -> Tensor:
        """Return (B,): how many tokens, without `</s>`, each sentence's translation has at least.

        lengths: as for `limits`.
        """
        return _times(lengths - 1, self.min_length_factor).clamp(min=self.min_length)


def refuse_if_set(config: SearchConfig, condition: str, *names: str) -> None:
    """Raise ConfigError if one of these settings, which have no effect on this condition, is not at its default."""
    for field in fields(config):
        if field.name in names and (value := getattr(config, field.name)) != field.default:
            raise ConfigError(f"search.{field.name} ({value}) has no effect {condition}")


def _times(lengths: Tensor, factor: float) -> Tensor:
    """Return the product, rounded up.

    In exact fractions, as the factor is written: in float32 0.3 * 50 is above 15, in float64 1.1 * 10 above 11.
    """
    exact = Fraction(str(factor)).limit_denominator(10**6)
    return -(-lengths * exact.numerator // exact.denominator)


class Search(ABC):
    """An algorithm that finds likely translations; it keeps nothing between calls, and may be called from threads."""

    @abstractmethod
    def search(
        self, model: Seq2Seq, source: Tensor, lengths: Tensor, scored: bool = True, wishes: Sequence[Wish] = ()
    ) -> list[list[Hypothesis]]:
        """Translate a padded batch: source (B, S), lengths (B,) with `</s>` -> per sentence, best hypothesis first.

        scored: whether log-probability and score are needed besides the tokens. wishes: of each sentence; by default
        there are none.
        """


class Selection(ABC):
    """A choice among the hypotheses of a sentence by their texts; it may be called from threads."""

    @abstractmethod
    def select(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Rendered]:
        """Return the hypotheses chosen, with their texts, best first. texts: of the hypotheses, in their order."""


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


def most_likely_token(model: Seq2Seq, features: Tensor) -> Tensor:
    """(B, 1, D) -> (B, 1): the token with the largest logit, never `<pad>` or `<s>`; nothing is normalised."""
    logits = model.logits(features)[:, 0]
    for symbol in (PAD, BOS):
        logits[:, symbol] = NEVER
    token: Tensor = _argmax(logits, _GROUPS)
    return token


_GROUPS = 256


def _argmax(logits: Tensor, groups: int) -> Tensor:
    """(B, V) -> (B, 1): the column of each row's maximum, in two steps as in `_largest`."""
    vocabulary = logits.size(1)
    groups = min(groups, vocabulary)
    group = _maxima(logits, groups).argmax(dim=1, keepdim=True)
    column = (group + torch.arange(0, vocabulary, groups, device=group.device)).clamp_(max=vocabulary - 1)
    return column.gather(1, logits.gather(1, column).argmax(dim=1, keepdim=True))


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


SEARCHES: Registry[SearchConfig] = Registry("search", "tolka.search")
