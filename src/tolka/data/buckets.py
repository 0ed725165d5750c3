"""Batching: sentences of similar length together, under a ceiling of padded tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.data.mixture import Mixture
from tolka.errors import ConfigError
from tolka.options.checks import at_least, share_below_one, zero_or_more

_SORTED_TOGETHER = 2**20  # rows; as many as the last 20 bits of a sort key tell apart
_PLACE, _SOURCE = np.uint64(2**20 - 1), np.uint64(2**22 - 1)  # the last bits of a sort key, and those before them
_MEASURED = 4000  # batches that padding is measured on
Indices = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]


@dataclass(frozen=True)
class BatchingConfig:
    """Size and order of batches."""

    tokens: int = 4096
    """ceiling on a batch: sentences times the longest side, padding and </s> included"""
    max_length: int = 256
    """training pairs with more tokens on a side are left out, and counted"""
    auto: bool = False
    """(batching.tokens=auto) an update keeps trainer.accumulate x tokens, in as few batches as fit into memory"""
    sentences: int = 0
    """ceiling on the sentences of a batch; 0 = no ceiling"""
    sampling: float = 0.0
    """another segmentation each epoch: bpe, share of merges dropped (0.1); unigram, exponent (0.2); 0 = off"""

    def __post_init__(self) -> None:
        at_least(self, "batching", 1, "max_length")
        if self.tokens < self.max_length + 1:
            raise ConfigError(
                f"batching.tokens ({self.tokens}) is smaller than one sentence may be: with </s> it must be at least "
                f"batching.max_length + 1 ({self.max_length + 1}); raise the one or lower the other"
            )
        zero_or_more(self, "batching", "no ceiling", "sentences")
        if self.auto and self.sentences:
            raise ConfigError(
                f"batching.sentences ({self.sentences}) and batching.tokens=auto both say how large a batch is: with "
                "fewer batches to an update it would have fewer sentences; leave one of them out"
            )
        share_below_one(self, "batching", "sampling")


@dataclass(frozen=True)
class Padding:
    """Padded positions and tokens per side, of a number of batches."""

    batches: int
    source_positions: int
    source_tokens: int
    target_positions: int
    target_tokens: int

    @property
    def tokens_per_batch(self) -> float:
        """Target tokens of a batch, on average."""
        return self.target_tokens / self.batches

    @property
    def source_share(self) -> float:
        """Share of the padded source positions that hold no token."""
        return 1.0 - self.source_tokens / self.source_positions

    @property
    def target_share(self) -> float:
        """Share of the padded target positions that hold no token."""
        return 1.0 - self.target_tokens / self.target_positions


def make_batches(
    source: Lengths, target: Lengths, config: BatchingConfig, seed: int, epoch: int, mixture: Mixture | None = None
) -> list[Indices]:
    """Return all sentences of one epoch in batches of similar length, in random order; a function of the seed.

    source, target: (pairs,) lengths without </s>. mixture: how often which are drawn; each once without it. Sorting by
    target, then source, keeps nearly all padding out of the decoder, where a position costs most; the source goes up
    and down in turn, so that a batch of two targets' lengths has sources of like length; ties are broken at random, so
    that batches differ between epochs. What is sorted together is a random million, so that memory beyond
    eight bytes a sentence does not grow with their number.
    """
    rng = np.random.default_rng([seed, epoch])
    order = (mixture or Mixture.of([len(target)])).draw(rng)
    batches = []
    for start in range(0, len(order), _SORTED_TOGETHER):
        block = order[start : start + _SORTED_TOGETHER]
        lengths = _sort(block, source, target)
        batches += cut(lengths, block, config.tokens, config.sentences)
    return [batches[i] for i in rng.permutation(len(batches))]


def _sort(block: Indices, source: Lengths, target: Lengths) -> npt.NDArray[np.int64]:
    """Sort rows in place by target, then source (alternating direction), then position; return the longer lengths.

    The three are packed into one number each: faster than `numpy.lexsort`, and no rows are gathered a second time.
    """
    targets = target[block].astype(np.uint64)
    keys = targets << np.uint64(42)
    keys |= _turned(source[block].astype(np.uint64), targets) << np.uint64(20)
    keys |= np.arange(len(block), dtype=np.uint64)
    keys.sort()
    block[:] = block[(keys & _PLACE).astype(np.int64)]
    targets = keys >> np.uint64(42)
    return np.maximum(targets, _turned((keys >> np.uint64(20)) & _SOURCE, targets)).astype(np.int64) + 1


def _turned(sources: npt.NDArray[np.uint64], targets: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Reverse the order of sources where the target's length is odd; twice, it is the source again."""
    return np.where(targets & np.uint64(1), _SOURCE - sources, sources)


def cut(lengths: npt.NDArray[np.integer], order: Indices, tokens: int, sentences: int = 0) -> list[Indices]:
    """Return consecutive runs of `order` with (sentences x longest) <= tokens; a longer sentence is alone.

    lengths: of the sentences in `order`, </s> included.
    """
    batches, start = [], 0
    most = sentences or len(order)
    while start < len(order):
        # A budget is a ceiling, and no run has more sentences than fit with the first one's length.
        ahead = lengths[start : start + max(1, min(most, tokens // int(lengths[start])))]
        grown = np.maximum.accumulate(ahead).astype(np.int64) * np.arange(1, len(ahead) + 1)
        end = start + max(1, int(np.searchsorted(grown, tokens, side="right")))
        batches.append(order[start:end])
        start = end
    return batches


def longest_first(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Return row numbers in batches of similar length, under a ceiling of padded tokens, the longest first.

    What does not fit into memory fails at once. A longer row is alone.
    """
    known, order = _longest_first(lengths)
    return [rows.tolist() for rows in cut(known, order, max(1, tokens))]


def _longest_first(lengths: Sequence[int]) -> tuple[Indices, Indices]:
    """Return the lengths in descending order, and their row numbers."""
    known = np.array(lengths, dtype=np.int64)
    order = np.argsort(-known, kind="stable")
    return known[order], order


def evenly_longest_first(lengths: Sequence[int], tokens: int, least: int, multiple: int) -> list[list[int]]:
    """Return `longest_first` batches under the lowest ceiling that gives no more batches than needed.

    At least `least` of them, rounded up to a `multiple`: evenly filled, so that no worker is left with one while others
    idle.
    """
    known, order = _longest_first(lengths)
    low, high = 0, max(1, tokens)
    wanted = -(-max(least, len(cut(known, order, high))) // multiple) * multiple
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if len(cut(known, order, middle)) <= wanted else (middle, high)
    return [rows.tolist() for rows in cut(known, order, high)]


def largest_batch(source: Lengths, target: Lengths, batches: list[Indices]) -> int:
    """Return the number of the batch with the most padded positions of both sides; of many, among the first ones."""
    longest = [(len(rows), source[rows].max() + 1, target[rows].max() + 1) for rows in batches[:_MEASURED]]
    return int(np.argmax([rows * (int(one) + int(other)) for rows, one, other in longest]))


def measure_padding(source: Lengths, target: Lengths, batches: list[Indices]) -> Padding:
    """Return positions and tokens of these batches, counting </s>; of many, of the first ones."""
    batches = batches[:_MEASURED]
    rows = np.concatenate(batches)
    sizes = np.array([len(batch) for batch in batches])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    totals = []
    for lengths in (source, target):
        known = lengths[rows] + 1
        totals += [int((np.maximum.reduceat(known, starts) * sizes).sum()), int(known.sum())]
    return Padding(len(batches), *totals)
