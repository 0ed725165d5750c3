"""The contract of a search, and the options that every search has; needs no torch."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tolka.errors import ConfigError
from tolka.options.checks import at_most, zero_or_more
from tolka.options.registry import Registry
from tolka.options.settings import setting
from tolka.search.hypothesis import Hypothesis, Rendered, Wish
from tolka.system.surrogates import printable

if TYPE_CHECKING:
    from torch import Tensor

    from tolka.models.base import Seq2Seq

_MAX_LENGTH = 10**6  # subwords, or a factor of the source's
MAX_WIDTH = 4096  # hypotheses a sentence: each has the log-probabilities of a whole vocabulary at every step
L = TypeVar("L", int, "Tensor")


def named(path: str) -> Any:
    """Return the class that "module:class" names.

    A module of options names its search like this, and does not import it, so that options need no torch.
    """
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class SearchConfig(ABC):
    """Options that every search has."""

    RESUMABLE: ClassVar[bool] = True
    MEETS_TERMS: ClassVar[bool] = False
    """Whether the search considers the terms of a wish."""
    ALGORITHM: ClassVar[str] = ""
    """The Search that `build` returns: "module:class", imported when it is needed; "" where `build` is overridden."""

    max_length_factor: float = 2.0
    """a translation may have this many times the source's subwords (and at least one) ..."""
    max_length_extra: int = 20
    """... plus this many"""
    min_length: int = 0
    """a translation has at least this many subwords, if the limit above allows them"""
    no_repeat_ngram: int = 0
    """no sequence of this many subwords appears twice in a translation; 0 = off"""
    glossary: str = setting("", literal=True, any_bytes=True)
    """file of terms and their translations (TSV or TBX), which translations must contain; for beam search"""
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
        zero_or_more(self, "search", "off", "min_length", "no_repeat_ngram")
        at_most(self, "search", _MAX_LENGTH, "min_length", "no_repeat_ngram")

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
        """Hypotheses among which `selection` chooses, at most; more than `returned` where some may be left out."""
        return self.returned

    def build(self) -> "Search":
        """Return the search with these options."""
        search: Search = named(self.ALGORITHM)(self)
        return search

    def selection(self, language: str) -> "Selection":
        """Return what chooses among the hypotheses found by their texts. language: the code of the target language."""
        return Different(self.returned)

    def limits(self, lengths: "Tensor") -> "Tensor":
        """Return (B,): how many tokens, `</s>` included, each sentence's translation may have.

        lengths: (B,) of the sources, `</s>` included.
        """
        return _times(lengths, self.max_length_factor).clamp(min=1) + self.max_length_extra

    def limit(self, length: int) -> int:
        """Return `limits` of one sentence."""
        return max(_times(length, self.max_length_factor), 1) + self.max_length_extra


def refuse_if_set(config: SearchConfig, condition: str, *names: str) -> None:
    """Raise ConfigError if one of these settings, which have no effect on this condition, is not at its default."""
    for field in fields(config):
        if field.name in names and (value := getattr(config, field.name)) != field.default:
            raise ConfigError(f"search.{field.name} ({value}) has no effect {condition}")


def _times(lengths: L, factor: float) -> L:
    """Return the product, rounded up.

    In exact fractions, as the factor is written: in float32 0.3 * 50 is above 15, in float64 1.1 * 10 above 11.
    """
    exact = Fraction(str(factor)).limit_denominator(10**6)
    return -(-lengths * exact.numerator // exact.denominator)


class Search(ABC):
    """An algorithm that finds likely translations; it keeps nothing between calls, and may be called from threads."""

    @abstractmethod
    def search(
        self, model: "Seq2Seq", source: "Tensor", lengths: "Tensor", scored: bool = True, wishes: Sequence[Wish] = ()
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


class Different(Selection):
    """The first hypotheses of which no two have the same text, blanks aside, sorted by score.

    A text may be spelt in several sequences of subwords; the first one of them, the best of a beam, stands for it.
    """

    def __init__(self, count: int) -> None:
        """count: how many hypotheses are returned, at most."""
        self._count = count

    def select(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Rendered]:
        first: dict[str, Rendered] = {}
        for text, hypothesis in zip(texts, hypotheses, strict=True):
            first.setdefault(" ".join(text.split()), (text, hypothesis))
        return sorted(list(first.values())[: self._count], key=lambda each: -each[1].score)


SEARCHES: Registry[SearchConfig] = Registry("search", "tolka.search.options")
