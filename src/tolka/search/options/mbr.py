"""Options of minimum Bayes risk decoding."""

from dataclasses import dataclass, fields

from tolka.errors import ConfigError
from tolka.metrics.pairwise import UTILITIES, pairwise
from tolka.options.checks import at_least, at_most, one_of
from tolka.search.options.base import SEARCHES, Different, Search, SearchConfig, Selection, named, refuse_if_set
from tolka.search.options.beam import BeamConfig
from tolka.search.options.sampling import SamplingConfig

_CANDIDATES = ("sampling", "beam")
_MAX_SAMPLES = 1024  # beyond, the utilities of all pairs take longer than the search
_OF_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")


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
    utility: str = "chrf"
    """how much one is like another one: chrf (chrF2 of the sentence) or bleu (smoothed BLEU of the sentence)"""
    epsilon: float = 0.02
    """only tokens with this probability are drawn (Freitag et al. 2023 recommend it for MBR); 0 = off"""
    n_best: int = 1
    """translations returned for each sentence, the one with the highest mean utility first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 2, "samples")
        at_most(self, "search", _MAX_SAMPLES, "samples")
        one_of(self, "search", "candidates", _CANDIDATES)
        one_of(self, "search", "utility", UTILITIES)
        if self.n_best > self.samples:
            raise ConfigError(
                f"search.n_best ({self.n_best}) must be at most search.samples ({self.samples}): raise that too"
            )
        if self.candidates == "beam":
            refuse_if_set(self, "with search.candidates=beam", *_OF_SAMPLING)

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
        different = Different(self.samples) if self.candidates == "beam" else None
        of_utility = named("tolka.search.mbr:MinimumBayesRisk")
        chosen: Selection = of_utility(pairwise(self.utility, language), self.n_best, different)
        return chosen

    def _of_candidates(self) -> SearchConfig:
        """Return the options of the search that finds the candidates."""
        kind = SearchConfig if self.candidates == "beam" else SamplingConfig
        options = {field.name: getattr(self, field.name) for field in fields(kind)}
        if self.candidates == "beam":
            return BeamConfig(**options, beam_size=self.samples, n_best=self.samples)
        return SamplingConfig(**{**options, "name": SamplingConfig.name, "n_best": self.samples})
