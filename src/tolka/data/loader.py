"""Batches of a token store, in an order that can be resumed anywhere."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tolka.data.batch import Batch
from tolka.data.buckets import BatchingConfig, Indices, make_batches
from tolka.data.mixture import Mixture
from tolka.data.store import TokenStore
from tolka.distributed.ranks import Ranks

_MEASURED_BATCHES = 4000  # of a round, for statistics
Resample = Callable[[TokenStore, int], TokenStore]
"""(store, epoch) -> the epoch's segmentation of the same pairs, in the same order."""


@dataclass(frozen=True)
class Round:
    """One epoch, or one buffer of a stream: its pairs, and the row numbers of each batch."""

    number: int
    store: TokenStore
    batches: list[Indices]


@dataclass(frozen=True)
class Share:
    """One rank's part of a batch. tokens: of the whole batch.

    counts: False for a rank that is left without a pair; its part is then the first pair, to be computed in vain, as
    all ranks have to compute together.
    """

    batch: Batch
    tokens: int
    counts: bool = True


class Batches(ABC):
    """The batches of training, in rounds (epochs or buffers); each round is a function of the seed and its number."""

    round: str
    """what a round is called: epoch, or buffer"""

    def __init__(self, config: BatchingConfig, seed: int, mixture: Mixture | None = None) -> None:
        """mixture: how often each row is drawn; once by default."""
        self._config, self._seed, self._mixture = config, seed, mixture
        self._round: Round | None = None  # the current one

    @abstractmethod
    def _store(self, number: int) -> TokenStore:
        """Return the rows of a round."""

    def _at(self, number: int) -> Round:
        """Return a round; it becomes the current one."""
        if self._round is None or self._round.number != number:
            self._round = self._cut(number, self._store(number))
        return self._round

    def _cut(self, number: int, store: TokenStore) -> Round:
        return Round(number, store, make_batches(*store.lengths, self._config, self._seed, number, self._mixture))

    @property
    def tokens(self) -> int:
        """Ceiling on a batch; see BatchingConfig."""
        return self._config.tokens

    def resize(self, tokens: int) -> None:
        """Change the ceiling, also for the current round."""
        if tokens != self._config.tokens:
            self._config = replace(self._config, tokens=tokens)
            # The pairs stay: a stream's buffer is not read again, nor are words segmented again.
            self._round = self._round and self._cut(self._round.number, self._round.store)

    def plan(self, epoch: int) -> list[Indices]:
        """Return the pairs of each batch of a round (counted from 0)."""
        return self._at(epoch).batches

    def batches_at_hand(self, epoch: int) -> int | None:
        """Return the number of batches of a round; None unless it is the current one."""
        return len(self._round.batches) if self._round and self._round.number == epoch else None

    def batch(self, epoch: int, number: int) -> Batch:
        """Return batch `number` (from 0) of a round, on the CPU."""
        current = self._at(epoch)
        return current.store.batch(current.batches[number])

    def share(self, epoch: int, number: int, ranks: Ranks) -> Share:
        """Return this rank's pairs of batch `number`."""
        if ranks.size == 1:
            whole = self.batch(epoch, number)
            return Share(whole, whole.tokens)
        # The plan is a function of the seed: every rank makes the same one, and nothing has to be sent.
        current = self._at(epoch)
        store, rows = current.store, current.batches[number]
        # A batch's pairs are in the order of their lengths: dealt out like cards, they give every rank about as many
        # positions to compute. A pair that is left over goes to another rank in each batch.
        own = rows[(ranks.rank + number) % ranks.size :: ranks.size]
        # The tokens of all ranks, from the lengths alone: the other ranks' pairs are not read.
        return Share(store.batch(own if len(own) else rows[:1]), store.target_tokens(rows), len(own) > 0)

    def largest(self) -> Batch:
        """Return the batch with the most positions, which needs the most memory, of the current round, or the first."""
        current = self._round or self._at(0)
        source, target = current.store.lengths
        measured = current.batches[:_MEASURED_BATCHES]
        sizes = [len(rows) * (int(source[rows].max()) + int(target[rows].max()) + 2) for rows in measured]
        return self.batch(current.number, int(np.argmax(sizes)))

    def tokens_per_batch(self, epoch: int) -> float:
        """Return how many target tokens, with </s>, a batch of a round has on average."""
        current = self._at(epoch)
        measured = current.batches[:_MEASURED_BATCHES]
        rows = np.concatenate(measured)
        return (int(current.store.lengths[1][rows].sum()) + len(rows)) / len(measured)

    def state(self) -> dict[str, Any]:
        """Return plain values to resume from, besides the numbers of round and batch; there are none by default."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:  # noqa: B027  (there is nothing in it by default)
        """Resume from what `state` returned."""


class Loader(Batches):
    """Epochs of batches, each a function of (seed, epoch), so that resuming reads no earlier batch."""

    round = "epoch"

    def __init__(
        self,
        store: TokenStore,
        config: BatchingConfig,
        seed: int,
        resample: Resample | None = None,
        mixture: Mixture | None = None,
    ) -> None:
        """resample: draws the segmentations of each epoch; by default the store's are used. mixture: see Batches."""
        super().__init__(config, seed, mixture)
        self.store, self._resample = store, resample

    def _store(self, number: int) -> TokenStore:
        if not self._resample:
            return self.store
        return replace(self._resample(self.store, number), tags=self.store.tags)


def in_order(store: TokenStore, tokens: int) -> Iterator[Batch]:
    """Yield every pair once, in batches of similar length: for validation, where the order does not matter."""
    config = BatchingConfig(tokens=tokens, max_length=tokens - 1)
    for rows in make_batches(*store.lengths, config, seed=0, epoch=0):
        yield store.batch(rows)
