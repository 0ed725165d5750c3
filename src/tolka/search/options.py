"""The contract of a search, and what can be set for each kind; needs no torch."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tolka.errors import ConfigError
from tolka.options.checks import at_least, at_most, one_of, share_below_one, zero_or_more
from tolka.options.registry import Registry
from tolka.options.settings import setting
from tolka.search.hypothesis import Hypothesis, Rendered, Wishes
from tolka.search.length_penalty import NORMALIZATIONS, Length, length_penalty
from tolka.system.surrogates import printable

if TYPE_CHECKING:
    from torch import Tensor

    from tolka.models.base import Seq2Seq

_MAX_LENGTH = 10**6  # subwords, or a factor of the source's
# Hypotheses a sentence: each has the log-probabilities of a whole vocabulary at every step.
_MAX_WIDTH = 4096
_MAX_LENGTH_PENALTY = 20.0  # beyond, floats overflow
_MAX_DIVERSITY = 10**6
# Beyond, the utilities of all pairs take longer than the search.
_MAX_SAMPLES = 1024
_LEAST_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0
Count = TypeVar("Count", int, "Tensor")


def import_class(path: str) -> Any:
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
        at_least(self, "search", 0, "max_length_factor", "max_length_extra")
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
        """Return the search with these options; ConfigError for a plugin's class that does not name its search."""
        if not self.ALGORITHM:
            raise ConfigError(f"{type(self).__name__} lacks ALGORITHM, the name of its search, or a method build")
        search: Search = import_class(self.ALGORITHM)(self)
        return search

    def selection(self, language: str) -> "Selection":
        """Return the choice among the hypotheses found, by their texts. language: the code of the target language."""
        return Different(self.returned)

    def limits(self, lengths: "Tensor") -> "Tensor":
        """Return (B,): how many tokens, `</s>` included, each sentence's translation may have.

        lengths: (B,) of the sources, `</s>` included.
        """
        # A model may repeat itself without end: the limit is proportional to the source, as translations are.
        return _times(lengths, self.max_length_factor).clamp(min=1) + self.max_length_extra

    def limit(self, length: int) -> int:
        """Return `limits` of one sentence."""
        return max(_times(length, self.max_length_factor), 1) + self.max_length_extra


def refuse_if_set(config: SearchConfig, condition: str, *names: str) -> None:
    """Raise ConfigError if one of these settings, which have no effect on this condition, is not at its default."""
    # Compared with the default: whether the user has typed it is not known here.
    for field in fields(config):
        if field.name in names and (value := getattr(config, field.name)) != field.default:
            raise ConfigError(f"search.{field.name} ({value}) has no effect {condition}")


def _times(lengths: Count, factor: float) -> Count:
    """Return the product, rounded up."""
    # In exact fractions, as the factor is written: in float32 0.3 * 50 is above 15, in float64 1.1 * 10 above 11.
    exact = Fraction(str(factor)).limit_denominator(10**6)
    return -(-lengths * exact.numerator // exact.denominator)


class Search(ABC):
    """An algorithm that finds likely translations; it keeps nothing between calls, and may be called from threads."""

    @abstractmethod
    def search(
        self, model: "Seq2Seq", source: "Tensor", lengths: "Tensor", wishes: Wishes = ()
    ) -> list[list[Hypothesis]]:
        """Translate a padded batch: source (B, S), lengths (B,) with `</s>` -> per sentence, best hypothesis first.

        wishes: of each sentence; by default there are none.
        """


class Selection(ABC):
    """A choice among the hypotheses of a sentence by their texts; it may be called from threads."""

    @abstractmethod
    def select(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Rendered]:
        """Return the hypotheses chosen, with their texts, best first. texts: of the hypotheses, in their order."""


class Different(Selection):
    """The first hypotheses of which no two have the same text, blanks aside, sorted by score."""

    def __init__(self, count: int) -> None:
        """count: how many hypotheses are returned, at most."""
        self._count = count

    def select(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[Rendered]:
        # A text may be spelt in several sequences of subwords: the first of them, the best of a beam, stands for it.
        first: dict[str, Rendered] = {}
        for text, hypothesis in zip(texts, hypotheses, strict=True):
            first.setdefault(" ".join(text.split()), (text, hypothesis))
        return sorted(list(first.values())[: self._count], key=lambda each: -each[1].score)


SEARCHES: Registry[SearchConfig] = Registry("search", "tolka.search.options")


@SEARCHES.register("greedy")
@dataclass(frozen=True)
class GreedyConfig(SearchConfig):
    """Options of greedy decoding."""

    ALGORITHM: ClassVar[str] = "tolka.search.greedy:GreedySearch"

    name: str = "greedy"
    """the kind of search: greedy"""

    @property
    def width(self) -> int:
        return 1


@dataclass(frozen=True)
class BeamOptions(SearchConfig):
    """Options of beam search, of whatever kind."""

    beam_size: int = 5
    """hypotheses kept for each sentence, at most 4096"""
    length_normalization: str = "gnmt"
    """what log-probabilities are divided by: gnmt ((5 + length) / 6) ** a, plain length ** a, none 1"""
    length_penalty: float = 1.0
    """a, the exponent above; 0 = off, more = longer translations"""
    n_best: int = 1
    """different translations returned for each sentence, at most beam_size"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 1, "beam_size", "n_best")
        at_most(self, "search", _MAX_WIDTH, "beam_size")
        one_of(self, "search", "length_normalization", NORMALIZATIONS)
        zero_or_more(self, "search", "off", "length_penalty")
        at_most(self, "search", _MAX_LENGTH_PENALTY, "length_penalty")
        if self.n_best > self.beam_size:
            raise ConfigError(
                f"search.n_best ({self.n_best}) must be at most search.beam_size ({self.beam_size}): raise that too"
            )
        if self.length_normalization == "none" and self.length_penalty:
            refuse_if_set(self, "with search.length_normalization=none", "length_penalty")

    @property
    def width(self) -> int:
        return self.beam_size

    @property
    def returned(self) -> int:
        return self.n_best

    @property
    def candidate_count(self) -> int:
        # As several may have the same text.
        return 1 if self.n_best == 1 else self.groups * self.enough

    @property
    def enough(self) -> int:
        """Number of finished hypotheses with which the search of a group ends, as the first ones may be short and poor.

        A beam of one is greedy search.
        """
        width = self.beam_size // self.groups
        return 2 * width if width > 1 else 1

    @property
    def compared(self) -> int:
        """Number of finished hypotheses of a single group that no active one may be able to beat before it ends."""
        return self.beam_size if self.n_best > 1 else 1

    @property
    def groups(self) -> int:
        """How many groups the beam is divided into."""
        return 1

    @property
    def diversity(self) -> float:
        """What a token costs each time that an earlier group took it in this step."""
        return 0.0

    def penalty(self, length: Length) -> Length:
        """Return the divisor of log-probabilities; see `length_penalty`."""
        return length_penalty(length, self.length_normalization, self.length_penalty)


@SEARCHES.register("beam")
@dataclass(frozen=True)
class BeamConfig(BeamOptions):
    """Options of beam search."""

    MEETS_TERMS: ClassVar[bool] = True
    ALGORITHM: ClassVar[str] = "tolka.search.beam:BeamSearch"

    name: str = "beam"
    """the kind of search: beam"""


@SEARCHES.register("diverse")
@dataclass(frozen=True)
class DiverseConfig(BeamOptions):
    """Options of diverse beam search."""

    ALGORITHM: ClassVar[str] = "tolka.search.beam:BeamSearch"

    name: str = "diverse"
    """the kind of search: diverse"""
    beam_size: int = 6
    """hypotheses kept for each sentence, in all groups together"""
    groups: int = 3
    """groups that the beam is divided into; beam_size must be a multiple of it"""
    diversity: float = 0.5
    """subtracted from a token's log-probability for each time that an earlier group took it in this step; 0 = off"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 1, "groups")
        zero_or_more(self, "search", "off", "diversity")
        at_most(self, "search", _MAX_DIVERSITY, "diversity")
        if self.beam_size % self.groups:
            raise ConfigError(
                f"search.beam_size ({self.beam_size}) must be a multiple of search.groups ({self.groups})"
            )


@SEARCHES.register("sampling")
@dataclass(frozen=True)
class SamplingConfig(SearchConfig):
    """Options of sampling. A token must pass each of top_k, top_p and epsilon; the most likely one always does.

    A search that chooses among samples builds this one with n_best as their number.
    """

    ALGORITHM: ClassVar[str] = "tolka.search.sampling:SamplingSearch"

    name: str = "sampling"
    """the kind of search: sampling"""
    temperature: float = 1.0
    """log-probabilities are divided by it before a token is drawn; below 1 = likely tokens more often"""
    top_k: int = 0
    """only the k most likely tokens are drawn; 0 = off"""
    top_p: float = 1.0
    """only the fewest most likely tokens are drawn that have this probability together; 1 = off"""
    epsilon: float = 0.0
    """only tokens with this probability are drawn (Hewitt et al. 2022); 0 = off"""
    seed: int = 1
    """of the random numbers; a sentence's samples depend on it and on the sentence, not on its neighbours"""
    n_best: int = 1
    """samples drawn for each sentence, at most 4096; those that differ are returned, the most likely one first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature == 0:
            raise ConfigError("search.temperature is 0: search=greedy takes the most likely token every time")
        at_least(self, "search", _LEAST_TEMPERATURE, "temperature")
        at_most(self, "search", _MAX_TEMPERATURE, "temperature")
        zero_or_more(self, "search", "off", "top_k")
        if not 0.0 < self.top_p <= 1.0:
            raise ConfigError(f"search.top_p ({self.top_p}) must be above 0 and at most 1 (off)")
        share_below_one(self, "search", "epsilon")
        at_least(self, "search", 0, "seed")
        at_least(self, "search", 1, "n_best")
        at_most(self, "search", _MAX_WIDTH, "n_best")

    @property
    def width(self) -> int:
        return self.n_best

    @property
    def returned(self) -> int:
        return self.n_best


@SEARCHES.register("mbr")
@dataclass(frozen=True)
class MbrConfig(SamplingConfig):
    """Options of minimum Bayes risk decoding; those of sampling are for its candidates."""

    name: str = "mbr"
    """the kind of search: mbr"""
    samples: int = 32
    """translations among which one is chosen, and with which it is compared; time and memory are proportional to it"""
    candidates: str = "sampling"
    """what they are: samples, or with beam the n-best list of a beam search of that size"""
    epsilon: float = 0.02
    """only tokens with this probability are drawn (Freitag et al. 2023 recommend it for MBR); 0 = off"""
    n_best: int = 1
    """translations returned for each sentence, the one with the highest mean chrF2 first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 2, "samples")
        at_most(self, "search", _MAX_SAMPLES, "samples")
        one_of(self, "search", "candidates", ("sampling", "beam"))
        if self.n_best > self.samples:
            raise ConfigError(
                f"search.n_best ({self.n_best}) must be at most search.samples ({self.samples}): raise that too"
            )
        if self.candidates == "beam":
            refuse_if_set(self, "with search.candidates=beam", "temperature", "top_k", "top_p", "epsilon", "seed")

    @property
    def width(self) -> int:
        return self.samples

    @property
    def candidate_count(self) -> int:
        return self._of_candidates().candidate_count

    def build(self) -> Search:
        """Return the search that finds the candidates; `selection` chooses among them."""
        return self._of_candidates().build()

    def selection(self, language: str) -> Selection:
        # Of samples, equal ones count as often as they were drawn: that estimates their probability. A beam's list has
        # a text twice only because it can be spelt twice.
        different = Different(self.samples) if self.candidates == "beam" else None
        chosen: Selection = import_class("tolka.search.mbr:MinimumBayesRisk")(self.n_best, different)
        return chosen

    def _of_candidates(self) -> SearchConfig:
        """Return the options of the search that finds the candidates."""
        # Beam search gets the options that every search has; those of sampling are refused where they are set.
        kind = SearchConfig if self.candidates == "beam" else SamplingConfig
        options = {field.name: getattr(self, field.name) for field in fields(kind)}
        if self.candidates == "beam":
            return BeamConfig(**options, beam_size=self.samples, n_best=self.samples)
        return SamplingConfig(**{**options, "name": SamplingConfig.name, "n_best": self.samples})
