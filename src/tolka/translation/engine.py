"""What a Translator computes with: ids of source sentences in, the best hypothesis of each out. Needs no torch."""

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from contextlib import AbstractContextManager

from tolka.search.hypothesis import Hypothesis


class Engine(ABC):
    """A model and a search on a device."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Hypotheses kept per sentence; memory and time are proportional to it."""

    @property
    @abstractmethod
    def cpu_threads(self) -> int:
        """Number of threads on a CPU; 0 on another device, which computes one batch at a time."""

    @abstractmethod
    def translate(self, sources: list[list[int]]) -> list[Hypothesis] | None:
        """Return the best hypothesis of each source (ids without `</s>`); None if the batch does not fit in memory.

        CheckpointError if the model's scores are not finite.
        """

    @abstractmethod
    def side_by_side(self, count: int) -> AbstractContextManager[Executor]:
        """Return an executor of `count` threads that share the CPU; of one, the caller's own thread."""

    @abstractmethod
    def free_memory(self) -> None:
        """Release cached memory after a batch that did not fit."""
