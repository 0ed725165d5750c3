"""Options of diverse beam search."""

from dataclasses import dataclass
from typing import ClassVar

from tolka.errors import ConfigError
from tolka.options.checks import at_least, at_most, zero_or_more
from tolka.search.options.base import SEARCHES
from tolka.search.options.beam import BeamOptions

_MAX_DIVERSITY = 10**6


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
