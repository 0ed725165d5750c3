"""What every search is given and gives back.

Shapes: B sentences, k hypotheses a sentence, V vocabulary.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from tolka.batch import BOS, PAD
from tolka.errors import ConfigError
from tolka.models.base import Seq2Seq
from tolka.registry import Registry


@dataclass(frozen=True)
class Hypothesis:
    """One translation. tokens: ids without `<s>` and `</s>`. log_probability: of all tokens, `</s>` included, in nats.

    score: what hypotheses are ranked by. finished: whether `</s>` was reached before the length limit.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool


@dataclass(frozen=True)
class SearchConfig(ABC):
    """Options that every search has."""

    max_length_factor: float = 2.0
    """a translation may have this many times the source's pieces (and at least one) ..."""
    max_length_extra: int = 20
    """... plus this many"""

    def __post_init__(self) -> None:
        if self.max_length_factor < 0 or self.max_length_extra < 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra must be 0 or more")
        if self.max_length_factor == 0 and self.max_length_extra == 0:
            raise ConfigError("search.max_length_factor and search.max_length_extra are both 0: nothing could be said")

    @property
    @abstractmethod
    def width(self) -> int:
        """Hypotheses kept per sentence: what memory and time grow with."""

    @abstractmethod
    def search(self, model: Seq2Seq, source: Tensor, lengths: Tensor) -> list[list[Hypothesis]]:
        """Translate a padded batch: source (B, S), lengths (B,) with `</s>` -> per sentence, best hypothesis first."""

    def limits(self, lengths: Tensor) -> Tensor:
        """(B,): how many tokens, `</s>` included, each sentence's translation may have."""
        return (lengths * self.max_length_factor).ceil().long().clamp(min=1) + self.max_length_extra


def next_log_probabilities(model: Seq2Seq, features: Tensor) -> Tensor:
    """Features (B, k, D) -> (B, k, V) log-probabilities in fp32; `<pad>` and `<s>` cannot be chosen."""
    log_p = model.logits(features).float().log_softmax(dim=-1)
    log_p[..., [PAD, BOS]] = float("-inf")
    return log_p


def first_tokens(sentences: int, device: torch.device) -> Tensor:
    """(B, 1): the `<s>` that every hypothesis starts from."""
    return torch.full((sentences, 1), BOS, dtype=torch.long, device=device)


SEARCHES: Registry[SearchConfig] = Registry("search", "tolka.search")
