"""Options of greedy decoding."""

from dataclasses import dataclass
from typing import ClassVar

from tolka.search.options.base import SEARCHES, SearchConfig


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
