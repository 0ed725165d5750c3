"""Which sentences go into a batch together: those of like length, under a ceiling of padded tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.checks import at_least, share_below_one, zero_or_more
from tolka.data.store import Lengths
from tolka.errors import ConfigError

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BatchingConfig:
    """Size of a batch."""

    tokens: int = 4096
    """ceiling on a batch: sentences times the longest side, padding and </s> included"""
    max_length: int = 256
    """training pairs with more pieces on a side are left out, and counted"""
    sentences: int = 0
    """ceiling on the sentences of a batch; 0 = no ceiling"""
    sampling: float = 0.0
    """other pieces each epoch: bpe, share of merges left out (0.1); unigram, exponent (0.2; less is wilder); 0 = off"""

    def __post_init__(self) -> None:
        at_least(self, "batching", 1, "max_length")
        if self.tokens < self.max_length + 1:
            raise ConfigError(
                f"batching.tokens ({self.tokens}) is smaller than one sentence may be: with </s> it must be at least "
                f"batching.max_length + 1 ({self.max_length + 1}); raise the one or lower the other"
            )
        zero_or_more(self, "batching", "no ceiling", "sentences")
        share_below_one(self, "batching", "sampling")


@dataclass(frozen=True)
class Padding:
    """What an epoch's batches spend on padding: positions in all, and those that hold a token, per side."""

    source_positions: int
    source_tokens: int
    target_positions: int
    target_tokens: int

    @property
    def source_share(self) -> float:
        """Share of the padded source positions that hold no token."""
        return 1.0 - self.source_tokens / self.source_positions

    @property
    def target_share(self) -> float:
        """Share of the padded target positions that hold no token."""
        return 1.0 - self.target_tokens / self.target_positions


def make_batches(source: Lengths, target: Lengths, config: BatchingConfig, seed: int, epoch: int) -> list[Indices]:
    """All sentences of one epoch in batches of like length, batches in random order; the same for the same seed.

    source, target: (pairs,) lengths without </s>. Sorting by target, then source, keeps nearly all padding out of
    the decoder, where a position costs most; ties are broken at random, so that batches differ between epochs.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(len(target))
    order = order[np.lexsort((source[order], target[order]))]
    batches = cut(np.maximum(source, target)[order] + 1, order, config.tokens, config.sentences)
    return [batches[i] for i in rng.permutation(len(batches))]


def cut(lengths: npt.NDArray[np.integer], order: Indices, tokens: int, sentences: int = 0) -> list[Indices]:
    """Consecutive runs of `order` with (sentences x longest) <= tokens; a longer sentence stands alone.

    lengths: of the sentences in `order`, </s> included.
    """
    batches, start, longest = [], 0, 0
    for end, length in enumerate(lengths.tolist()):
        grown = max(longest, length)
        # A budget is a ceiling: test before adding.
        full = grown * (end - start + 1) > tokens or (sentences and end - start == sentences)
        if full and end > start:
            batches.append(order[start:end])
            start, grown = end, length
        longest = grown
    if start < len(order):
        batches.append(order[start:])
    return batches


def longest_first(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Row numbers in batches of like length, under a ceiling of padded tokens; a longer row stands alone.

    The longest come first: what does not fit into memory fails at once.
    """
    known = np.array(lengths, dtype=np.int64)
    order = np.argsort(-known, kind="stable")
    return [rows.tolist() for rows in cut(known[order], order, max(1, tokens))]


def measure_padding(source: Lengths, target: Lengths, batches: list[Indices]) -> Padding:
    """Positions and tokens of these batches, </s> counted as a token."""
    totals = np.zeros(4, dtype=np.int64)
    for batch in batches:
        s, t = source[batch] + 1, target[batch] + 1
        totals += [s.max() * len(batch), s.sum(), t.max() * len(batch), t.sum()]
    return Padding(*map(int, totals))
