"""Batches of a token store, in an order that can be entered anywhere."""

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
    """One epoch, or one buffer of a stream: its rows, and those of each batch."""

    number: int
    store: TokenStore
    batches: list[Indices]


class Batches(ABC):
    """What training reads: rounds of batches, each a function of the seed and the round's number."""

    round: str
    """what a round is: epoch, or buffer"""

    def __init__(self, config: BatchingConfig, seed: int, mixture: Mixture | None = None) -> None:
        """mixture: how often each row is drawn, if not once."""
        self._config, self._seed, self._mixture = config, seed, mixture
        self._round: Round | None = None  # the one at hand

    @abstractmethod
    def _store(self, number: int) -> TokenStore:
        """Return the rows of a round."""

    def _at(self, number: int) -> Round:
        """Return a round, which is made unless it is the current one."""
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
        """Change the ceiling from now on."""
        if tokens != self._config.tokens:
            self._config = replace(self._config, tokens=tokens)
            self._round = self._round and self._cut(self._round.number, self._round.store)

    def plan(self, epoch: int) -> list[Indices]:
        """Return the pairs of each batch of a round (counted from 0)."""
        return self._at(epoch).batches

    def batches_at_hand(self, epoch: int) -> int | None:
        """Return how many batches a round has; None if it would have to be made first."""
        return len(self._round.batches) if self._round and self._round.number == epoch else None

    def batch(self, epoch: int, number: int) -> Batch:
        """Return batch `number` (from 0) of a round, on the CPU."""
        at = self._at(epoch)
        return at.store.batch(at.batches[number])

    def largest(self, epoch: int = 0) -> Batch:
        """Return the batch of a round that takes the most memory."""
        at = self._at(epoch)
        return self.batch(epoch, largest_batch(at.store.source_lengths, at.store.target_lengths, at.batches))

    def padding(self, epoch: int = 0) -> Padding:
        """Return the padding of a round."""
        at = self._at(epoch)
        return measure_padding(at.store.source_lengths, at.store.target_lengths, at.batches)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return plain values to resume from, beside the numbers of round and batch."""

    @abstractmethod
    def load_state(self, state: dict[str, Any]) -> None:
        """Resume from what `state` returned."""


class Loader(Batches):
    """Epochs of batches, each a function of (seed, epoch): resuming seeks instead of reading."""

    round = "epoch"

    def __init__(
        self,
        store: TokenStore,
        config: BatchingConfig,
        seed: int,
        resample: Resample | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        """resample: returns the rows of an epoch, if not the store's. mixture: see Batches."""
        super().__init__(config, seed, mixture)
        self.store = store
        self._resample = resample

    def _store(self, number: int) -> TokenStore:
        return self._resample(self.store, number) if self._resample else self.store

    def state(self) -> dict[str, Any]:
        """Return {}: an epoch's batches can be made at any time."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Do nothing."""


def in_order(store: TokenStore, tokens: int) -> Iterator[Batch]:
    """Return every pair once, in batches of similar length: for validation, where the order does not matter."""
    config = BatchingConfig(tokens=tokens, max_length=tokens - 1)
    for rows in make_batches(store.source_lengths, store.target_lengths, config, seed=0, epoch=0):
        yield store.batch(rows)
