"""Batches of a store in an order that can be entered at any point."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tolka.data.batch import Batch
from tolka.data.buckets import BatchingConfig, Indices, Padding, largest_batch, make_batches, measure_padding
from tolka.data.mixture import Mixture
from tolka.data.store import TokenStore

Resample = Callable[[TokenStore, int], TokenStore]
"""(store, epoch) -> the epoch's rows, pair by pair the same texts."""


@dataclass(frozen=True)
class Round:
    """An epoch's rows, or a buffer's, and which of them each batch holds."""

    number: int
    store: TokenStore
    batches: list[Indices]


class Batches(ABC):
    """What training reads: rounds of batches, each a fixed function of the seed and its number."""

    round: str
    """what a round is: epoch, or buffer"""

    def __init__(self, config: BatchingConfig, seed: int, mixture: Mixture | None = None) -> None:
        """mixture: how often which row is drawn, where that is not once."""
        self._config, self._seed, self._mixture = config, seed, mixture
        self._round: Round | None = None  # the one at hand

    @abstractmethod
    def _store(self, number: int) -> TokenStore:
        """The rows of a round."""

    def _at(self, number: int) -> Round:
        """A round, made when it is not the one at hand."""
        if self._round is None or self._round.number != number:
            self._round = self._cut(number, self._store(number))
        return self._round

    def _cut(self, number: int, store: TokenStore) -> Round:
        lengths = store.source_lengths, store.target_lengths
        return Round(number, store, make_batches(*lengths, self._config, self._seed, number, self._mixture))

    @property
    def tokens(self) -> int:
        """Ceiling on a batch; see BatchingConfig."""
        return self._config.tokens

    def resize(self, tokens: int) -> None:
        """Batches of so many tokens from here on."""
        if tokens != self._config.tokens:
            self._config = replace(self._config, tokens=tokens)
            self._round = self._round and self._cut(self._round.number, self._round.store)

    def plan(self, epoch: int) -> list[Indices]:
        """The pairs of each batch of a round (counted from 0)."""
        return self._at(epoch).batches

    def batches_at_hand(self, epoch: int) -> int | None:
        """How many a round has; None where it would have to be made first."""
        return len(self._round.batches) if self._round and self._round.number == epoch else None

    def batch(self, epoch: int, number: int) -> Batch:
        """Batch `number` (from 0) of a round, on the CPU."""
        at = self._at(epoch)
        return at.store.batch(at.batches[number])

    def largest(self, epoch: int = 0) -> Batch:
        """The batch of a round that takes the most memory."""
        at = self._at(epoch)
        return self.batch(epoch, largest_batch(at.store.source_lengths, at.store.target_lengths, at.batches))

    def padding(self, epoch: int = 0) -> Padding:
        """What a round spends on padding."""
        at = self._at(epoch)
        return measure_padding(at.store.source_lengths, at.store.target_lengths, at.batches)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Plain values that the numbers of round and batch do not tell, to go on from."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""


class Loader(Batches):
    """Epochs of batches, each a fixed function of (seed, epoch): resuming seeks instead of reading up to its place."""

    round = "epoch"

    def __init__(
        self,
        store: TokenStore,
        config: BatchingConfig,
        seed: int,
        resample: Resample | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        """resample: gives the rows of an epoch, where they are not the store's own. mixture: see Batches."""
        super().__init__(config, seed, mixture)
        self.store = store
        self._resample = resample

    def _store(self, number: int) -> TokenStore:
        return self._resample(self.store, number) if self._resample else self.store

    def state(self) -> dict[str, Any]:
        """Nothing: an epoch's batches can be made at any time."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Nothing to do."""


def in_order(store: TokenStore, tokens: int) -> Iterator[Batch]:
    """Every pair once, in batches of like length: for validation, where the order does not matter."""
    config = BatchingConfig(tokens=tokens, max_length=tokens - 1)
    for rows in make_batches(store.source_lengths, store.target_lengths, config, seed=0, epoch=0):
        yield store.batch(rows)
