"""Epochs that read other ids of the same pairs: other segmentations, or text with noise."""

import random
import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tolka.data.store import TokenStore, joined
from tolka.distributed.ranks import ALONE, Ranks
from tolka.system.progress import bar
from tolka.text.direction import Direction
from tolka.text.noise import JOIN, noises
from tolka.text.noise import joined as joined_lines
from tolka.text.pairs import Pair
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


class Augmenter(Rewriter):
    """Augmentation: another few of the pairs of each epoch are read with noise, as text that people write may have."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        rates: Mapping[str, float],
        seed: int,
        max_length: int,
        directions: Sequence[Direction],
        ranks: Ranks = ALONE,
        symbols: Sequence[str] = (),
    ) -> None:
        """rates: share of the pairs that gets each kind of noise. max_length: a pair that gets longer stays.

        directions: of the parts of the store. symbols: texts that stay as they are where a source begins with them, as
        tags of synthetic pairs do.
        """
        super().__init__("adding noise", seed, max_length, ranks)
        self._tokenizer, self._rates, self._directions = tokenizer, dict(rates), directions
        self._noises = list(map(noises, directions))
        self._head = re.compile(rf"(?:(?:{'|'.join(map(re.escape, symbols))})\s*)*" if symbols else "")

    def _rewritten(self, sources: Rows, targets: Rows, parts: list[int], seed: list[int]) -> tuple[Rows, Rows]:
        draw, changed = random.Random(*seeds_of(seed, 1)), dict[int, Pair]()
        for row in range(len(sources)):
            if kind := self._drawn(draw):
                head, pair = self._pair(sources[row], targets[row])
                if kind == JOIN:
                    # Of the same part, and so of the same languages.
                    other = draw.randrange(bisect_left(parts, parts[row]), bisect_right(parts, parts[row]))
                    _, second = self._pair(sources[other], targets[other])
                    pair = joined_lines([pair, second], self._directions[parts[row]])
                elif pair.source and pair.target:
                    pair = self._noises[parts[row]][kind](pair, draw)
                changed[row] = replace(pair, source=head + pair.source)
        new_sources, new_targets = list(sources), list(targets)
        for row, pair in changed.items():
            (source,) = self._tokenizer.encode_source([pair.source])
            (target,) = self._tokenizer.encode_target([pair.target])
            if source and target:
                new_sources[row], new_targets[row] = source, target
        return new_sources, new_targets

    def _pair(self, source: list[int], target: list[int]) -> tuple[str, Pair]:
        """Return the symbols that a source begins with, and the pair without them."""
        (one,), (other,) = self._tokenizer.decode_source([source]), self._tokenizer.decode_target([target])
        found = self._head.match(one)
        head = found.group() if found else ""
        return head, Pair(one[len(head) :], other)

    def _drawn(self, draw: random.Random) -> str:
        """Return the noise of a pair; "" for none."""
        left = draw.random()
        for kind, rate in self._rates.items():
            left -= rate
            if left < 0:
                return kind
        return ""
