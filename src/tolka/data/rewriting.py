"""Epochs that read other ids of the same pairs: other segmentations, or text with noise."""

from abc import ABC, abstractmethod

import numpy as np

from tolka.data.store import TokenStore, joined
from tolka.distributed.ranks import ALONE, Ranks
from tolka.system.progress import bar
from tolka.tokenizer.tokenizer import Tokenizer

_CHUNK_PAIRS = 10_000
Rows = list[list[int]]


class Rewriter(ABC):
    """Rewrites an epoch's ids, as a function of (seed, epoch) and of the store alone, without the text.

    Several ranks divide the pairs among themselves; each then has all of them.
    """

    def __init__(self, title: str, seed: int, max_length: int, ranks: Ranks = ALONE) -> None:
        """title: of the progress bar. max_length: a pair that gets longer keeps its ids."""
        self._title, self._seed, self._max_length, self._ranks = title, seed, max_length, ranks

    def __call__(self, store: TokenStore, epoch: int) -> TokenStore:
        """Return the same pairs in the same order, with other ids."""
        chunks, starts = list[TokenStore](), range(0, len(store), _CHUNK_PAIRS)
        with bar(f"{self._title} for epoch {epoch + 1}", len(store), " pairs") as progress:
            # A chunk for each rank at a time; seeded by where it begins, so that it is the same on any number of ranks.
            for first in range(0, len(starts), self._ranks.size):
                own = self._ranks.share(starts[first : first + self._ranks.size])
                rewritten = self._ranks.collect([self._chunk(store, start, epoch) for start in own])
                progress.update(sum(map(len, rewritten)))
                chunks += rewritten
        return joined(chunks)

    def _chunk(self, store: TokenStore, start: int, epoch: int) -> TokenStore:
        pairs = range(start, min(start + _CHUNK_PAIRS, len(store)))
        sources = [store.source(i).tolist() for i in pairs]
        targets = [store.target(i).tolist() for i in pairs]
        parts = store.tags.numbers(pairs).tolist()
        new_sources, new_targets = self._rewritten(sources, targets, parts, [self._seed, epoch, pairs.start])
        for i, (source, target) in enumerate(zip(new_sources, new_targets, strict=True)):
            # `batching.tokens` may be too small for a longer one.
            if max(len(source), len(target)) > self._max_length:
                new_sources[i], new_targets[i] = sources[i], targets[i]
        return TokenStore.from_rows(new_sources, new_targets)

    @abstractmethod
    def _rewritten(self, sources: Rows, targets: Rows, parts: list[int], seed: list[int]) -> tuple[Rows, Rows]:
        """Return other ids of the pairs; sources and targets stay as they are.

        parts: the number of the part of the store that each is in. seed: of this chunk.
        """


def seeds_of(seed: list[int], count: int) -> list[int]:
    """Return seeds for several generators of one chunk."""
    return [int(each) for each in np.random.SeedSequence(seed).generate_state(count)]


class SubwordSampler(Rewriter):
    """Subword regularisation (Kudo 2018): draws an epoch's segmentations of the same words.

    Takes about 0.3 ms per pair of short sentences on one core, and memory for the epoch's ids.
    """

    def __init__(self, tokenizer: Tokenizer, amount: float, seed: int, max_length: int, ranks: Ranks = ALONE) -> None:
        """amount: see BatchingConfig.sampling. max_length: a pair that gets longer keeps the store's segmentation."""
        super().__init__("cutting words again", seed, max_length, ranks)
        self._tokenizer, self._amount = tokenizer, amount

    def _rewritten(self, sources: Rows, targets: Rows, parts: list[int], seed: list[int]) -> tuple[Rows, Rows]:
        of_source, of_target = seeds_of(seed, 2)
        return (
            self._tokenizer.resample_source(sources, self._amount, of_source),
            self._tokenizer.resample_target(targets, self._amount, of_target),
        )
