"""Options of sampling."""

from dataclasses import dataclass
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.options.checks import at_least, at_most, share_below_one, zero_or_more
from tolka.search.options.base import MAX_WIDTH, SEARCHES, SearchConfig

_LEAST_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0


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
        at_most(self, "search", MAX_WIDTH, "n_best")

    @property
    def width(self) -> int:
        return self.n_best

    @property
    def returned(self) -> int:
        return self.n_best
