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
class MbrConfig(SearchConfig):
    """Options of minimum Bayes risk decoding."""

    name: str = "mbr"
    """the kind of search: mbr"""
    samples: int = 32
    """translations among which one is chosen, and with which it is compared; time and memory are proportional to it"""
    candidates: str = "sampling"
    """what they are: samples, or with beam the n-best list of a beam search of that size"""
    utility: str = "chrf"
    """how much one is like another one: chrf (chrF2 of the sentence) or bleu (smoothed BLEU of the sentence)"""
    temperature: float = SamplingConfig.temperature
    """as for search=sampling, like the next four settings"""
    top_k: int = SamplingConfig.top_k
    """only the k most likely tokens are drawn; 0 = off"""
    top_p: float = SamplingConfig.top_p
    """only the fewest most likely tokens are drawn that have this probability together; 1 = off"""
    epsilon: float = 0.02
    """only tokens with this probability are drawn (Freitag et al. 2023 recommend it for MBR); 0 = off"""
    seed: int = SamplingConfig.seed
    """of the random numbers; a sentence's samples depend on it and on the sentence, not on its neighbours"""
    n_best: int = 1
    """translations returned for each sentence, the one with the highest mean utility first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "search", 2, "samples")
        at_most(self, "search", _MAX_SAMPLES, "samples")
        one_of(self, "search", "candidates", _CANDIDATES)
        one_of(self, "search", "utility", UTILITIES)
        at_least(self, "search", 1, "n_best")
        if self.n_best > self.samples:
            raise ConfigError(
                f"search.n_best ({self.n_best}) must be at most search.samples ({self.samples}): raise that too"
            )
        if self.candidates == "beam":
            refuse_if_set(self, "with search.candidates=beam", *_OF_SAMPLING)
        self._of_candidates()  # ConfigError where the options of sampling are not as they must be

    @property
    def width(self) -> int:
        return self.samples

    @property
    def returned(self) -> int:
        return self.n_best

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
        shared = {field.name: getattr(self, field.name) for field in fields(SearchConfig)}
        if self.candidates == "beam":
            return BeamConfig(**shared, beam_size=self.samples, n_best=self.samples)
        return SamplingConfig(**shared, **{key: getattr(self, key) for key in _OF_SAMPLING}, n_best=self.samples)
