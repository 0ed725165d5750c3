"""Options of beam search, and those that every kind of it has."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tolka.errors import ConfigError
from tolka.options.checks import at_least, at_most, one_of, zero_or_more
from tolka.search.options.base import MAX_WIDTH, SEARCHES, SearchConfig, refuse_if_set

if TYPE_CHECKING:
    from torch import Tensor

_MAX_LENGTH_PENALTY = 20.0  # beyond, floats overflow
_NORMALIZATIONS = ("gnmt", "plain", "none")
Length = TypeVar("Length", float, "Tensor")


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
        at_most(self, "search", MAX_WIDTH, "beam_size")
        one_of(self, "search", "length_normalization", _NORMALIZATIONS)
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
        return 1 if self.n_best == 1 else 2 * self.beam_size  # all that finish: several may have the same text

    @property
    def compared(self) -> int:
        """Number of finished hypotheses that no active one may be able to beat before the search of a sentence ends.

        Several groups end by another rule.
        """
        return self.beam_size if self.n_best > 1 and self.groups == 1 else 1

    @property
    def groups(self) -> int:
        """How many groups the beam is divided into."""
        return 1

    @property
    def diversity(self) -> float:
        """What a token costs each time that an earlier group took it in this step."""
        return 0.0

    def penalty(self, length: Length) -> Length:
        """Return lp(Y), by which log-probabilities are divided; |Y| includes `</s>`. Of one length, or of several.

        gnmt: ((5 + |Y|) / 6) ** a (Wu et al. 2016, section 7). plain: |Y| ** a. It never falls as |Y| grows.
        """
        base: Length = (5.0 + length) / 6.0 if self.length_normalization == "gnmt" else length
        result: Length = base ** (0.0 if self.length_normalization == "none" else self.length_penalty)
        return result


@SEARCHES.register("beam")
@dataclass(frozen=True)
class BeamConfig(BeamOptions):
    """Options of beam search."""

    MEETS_TERMS: ClassVar[bool] = True
    ALGORITHM: ClassVar[str] = "tolka.search.beam:BeamSearch"

    name: str = "beam"
    """the kind of search: beam"""
