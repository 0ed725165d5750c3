"""Batches of a store in an order that can be entered at any point."""

from collections.abc import Iterator

from tolka.batch import Batch, collate
from tolka.data.buckets import BatchingConfig, Indices, Padding, make_batches, measure_padding
from tolka.data.store import TokenStore


class Loader:
    """Epochs of batches, each a fixed function of (seed, epoch): resuming seeks instead of reading up to its place."""

    def __init__(self, store: TokenStore, config: BatchingConfig, seed: int) -> None:
        self.store = store
        self._config = config
        self._seed = seed
        self._source_lengths, self._target_lengths = store.source_lengths, store.target_lengths
        self._plan: tuple[int, list[Indices]] | None = None

    def plan(self, epoch: int) -> list[Indices]:
        """The pairs of each batch of an epoch (counted from 0)."""
        if self._plan is None or self._plan[0] != epoch:
            batches = make_batches(self._source_lengths, self._target_lengths, self._config, self._seed, epoch)
            self._plan = epoch, batches
        return self._plan[1]

    def batch(self, epoch: int, number: int) -> Batch:
        """Batch `number` (from 0) of an epoch, on the CPU."""
        rows = self.plan(epoch)[number].tolist()
        return collate([self.store.source(i) for i in rows], [self.store.target(i) for i in rows])

    def padding(self, epoch: int = 0) -> Padding:
        """What an epoch spends on padding."""
        return measure_padding(self._source_lengths, self._target_lengths, self.plan(epoch))


def in_order(store: TokenStore, tokens: int) -> Iterator[Batch]:
    """Every pair once, in batches of like length: for validation, where the order does not matter."""
    config = BatchingConfig(tokens=tokens, max_length=tokens - 1)
    for rows in make_batches(store.source_lengths, store.target_lengths, config, seed=0, epoch=0):
        yield collate([store.source(i) for i in rows.tolist()], [store.target(i) for i in rows.tolist()])
