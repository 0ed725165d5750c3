"""The contract of engines: ids of source sentences in, hypotheses of each out. Needs no torch."""

from abc import ABC, abstractmethod
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from tolka.errors import ConfigError
from tolka.search.hypothesis import Hypothesis, Wishes
from tolka.search.options import SearchConfig
from tolka.tokenizer.language_tags import NO_TAGS, Tags

Rows = list[list[int]]
"""Ids of several sentences, without `</s>`."""
NOT_FINITE = (
    "the model's scores are not finite (NaN or inf), so that no translation is the best: its weights are too large or "
    "damaged; take another checkpoint, or decoding.precision=fp32 if it was another"
)


GRADIENT = "gradient"
"""Name of a map of gradients, which stands in for one of attention."""


class Engine(ABC):
    """A model on a device; the search comes with each call."""

    @property
    @abstractmethod
    def cpu_threads(self) -> int:
        """Number of threads on a CPU; 0 on another device, which computes one batch at a time."""

    @property
    def calls_at_once(self) -> int:
        """How many calls of `translate` are worth computing at the same time."""
        return 1

    @property
    def gpu_memory(self) -> int:
        """Bytes of memory of the GPU that it computes on, a common size where that is not known; 0 on a CPU."""
        return 0 if self.cpu_threads else 16 * 2**30

    def lacks(self, search: SearchConfig, *, has_terms: bool = False) -> str:
        """Return why the engine does not support a search; "" if it does. has_terms: or banned phrases."""
        return ""

    @property
    def longest_sentence(self) -> int | None:
        """Most subwords that a source or target may have; None without a limit."""
        return None

    def longest_translation(self, search: SearchConfig, source_length: int) -> int:
        """Return the most subwords that a translation may have. Neither length counts `</s>`."""
        return search.limit(source_length + 1) - 1

    @abstractmethod
    def translate(
        self, search: SearchConfig, sources: Rows, wishes: Wishes = (), scored: bool = False, tags: Tags = NO_TAGS
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first.

        sources: ids without `</s>`. wishes: constraints on the translation of each source. scored: whether scores are
        needed. tags: of the direction; no hypothesis has one. CheckpointError if the model's scores are not finite; an
        error of `is_out_of_memory` if the batch does not fit.
        """

    def score(self, sources: Rows, targets: Rows, tags: Tags = NO_TAGS) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`, given those before it.

        sources, targets: ids without `</s>`. tags: of the direction, which have no scores. Errors are those of
        `translate`.
        """
        raise ConfigError(f"{type(self).__name__} does not score given translations")

    def attention(self, sources: Rows, targets: Rows, tags: Tags, *, with_gradients: bool) -> tuple[str, list[Any]]:
        """Return the name of the last decoder layer's attention to the source, and each pair's mean over the heads.

        sources, targets: ids without `</s>`. Means are arrays (tags and target + 1, tags and source + 1), and may be
        padded. with_gradients: of a model without attention, return `source_gradients`, named GRADIENT. ConfigError for
        a model that has neither.
        """
        raise ConfigError(f"{type(self).__name__} gives no attention maps")

    @abstractmethod
    def side_by_side(self, count: int) -> AbstractContextManager[Executor]:
        """Return an executor of `count` threads that share the CPU; for one, it may be the caller's own thread."""

    def free_memory(self) -> None:  # noqa: B027  (not every engine has a cache)
        """Release cached memory after a batch that did not fit."""
