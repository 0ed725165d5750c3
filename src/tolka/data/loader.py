"""Batches of a store in an order that can be entered at any point."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tolka.batch import Batch, collate
from tolka.data.buckets import BatchingConfig, Indices, Padding, make_batches, measure_padding
from tolka.data.mixture import Mixture
from tolka.data.store import TokenStore

Resample = Callable[[TokenStore, int], TokenStore]
"""(store, epoch) -> the epoch's rows, pair by pair the same texts."""


@dataclass(frozen=True)
class _Epoch:
    """One epoch's rows, and which of them each batch holds."""

    number: int
    store: TokenStore
    batches: list[Indices]


class Loader:
    """Epochs of batches, each a fixed function of (seed, epoch): resuming seeks instead of reading up to its place."""

    def __init__(
        self,
        store: TokenStore,
        config: BatchingConfig,
        seed: int,
        resample: Resample | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        """resample: gives the rows of an epoch, where they are not the store's own.

        mixture: how often which row is drawn, where that is not once.
        """
        self.store = store
        self._config = config
        self._seed = seed
        self._resample = resample
        self._mixture = mixture
        self._epoch: _Epoch | None = None

    def _at(self, epoch: int) -> _Epoch:
        if self._epoch is None or self._epoch.number != epoch:
            store = self._resample(self.store, epoch) if self._resample else self.store
            lengths = store.source_lengths, store.target_lengths
            batches = make_batches(*lengths, self._config, self._seed, epoch, self._mixture)
            self._epoch = _Epoch(epoch, store, batches)
        return self._epoch

    def plan(self, epoch: int) -> list[Indices]:
        """The pairs of each batch of an epoch (counted from 0)."""
        return self._at(epoch).batches

    def batch(self, epoch: int, number: int) -> Batch:
        """Batch `number` (from 0) of an epoch, on the CPU."""
        rows, store = self.plan(epoch)[number].tolist(), self._at(epoch).store
        return collate([store.source(i) for i in rows], [store.target(i) for i in rows])

    def padding(self, epoch: int = 0) -> Padding:
        """What an epoch spends on padding."""
        at = self._at(epoch)
        return measure_padding(at.store.source_lengths, at.store.target_lengths, at.batches)


def in_order(store: TokenStore, tokens: int) -> Iterator[Batch]:
    """Every pair once, in batches of like length: for validation, where the order does not matter."""
    config = BatchingConfig(tokens=tokens, max_length=tokens - 1)
    for rows in make_batches(store.source_lengths, store.target_lengths, config, seed=0, epoch=0):
        yield collate([store.source(i) for i in rows.tolist()], [store.target(i) for i in rows.tolist()])
