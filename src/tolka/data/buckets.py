"""Batching: sentences of similar length together, under a ceiling of padded tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tolka.data.mixture import Mixture
from tolka.errors import ConfigError
from tolka.options.checks import at_least, share_below_one, zero_or_more
from tolka.options.settings import setting
from tolka.text.noise import KINDS

_SORTED_TOGETHER = 2**20  # rows of a block
# Share of the pairs that gets a kind of noise: what costs a model most, and is learnt most slowly, comes more often
# (docs/howto/train.md).
_NOISE = {
    **dict.fromkeys(KINDS, 0.03),
    "upper": 0.1,
    "title": 0.05,
    "no_end": 0.1,
    "typos": 0.15,
    "tags": 0.05,
    "join": 0.05,
}
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
    augment: list[str] = setting(default_factory=list, literal=True)
    """noise in some pairs of each epoch: [upper,typos:0.1], a kind and its share of the pairs; or all"""

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
        if sum(self.noise.values()) > 1:
            raise ConfigError(f"batching.augment ({', '.join(self.augment)}): the shares are more than 1 together")

    @property
    def noise(self) -> dict[str, float]:
        """The share of the pairs that gets each kind of noise."""
        rates = dict[str, float]()
        for entry in KINDS if self.augment == ["all"] else self.augment:
            kind, _, share = entry.partition(":")
            if kind not in KINDS:
                raise ConfigError(f"batching.augment: '{kind}' is no kind of noise. Known: {', '.join(KINDS)}, or all")
            try:
                rates[kind] = float(share or _NOISE[kind])
            except ValueError:
                rates[kind] = 0.0
            if not 0 < rates[kind] < 1:
                raise ConfigError(f"batching.augment ({entry}) must be a kind and its share, as in {kind}:0.05")
        return rates


def make_batches(
    source: Lengths, target: Lengths, config: BatchingConfig, seed: int, epoch: int, mixture: Mixture | None = None
) -> list[Indices]:
    """Return all sentences of one epoch in batches of similar length, in random order; a function of the seed.

    source, target: (pairs,) lengths without </s>. mixture: how often each pair is drawn, once by default.
    """
    rng = np.random.default_rng([seed, epoch])
    order = (mixture or Mixture.of([len(target)])).draw(rng)
    batches = []
    # Blocks of a random million pairs, so that memory beyond eight bytes a pair does not grow with the corpus. In so
    # many, nearly every batch finds pairs of its own length.
    for start in range(0, len(order), _SORTED_TOGETHER):
        block = order[start : start + _SORTED_TOGETHER]
        lengths = _sort(block, source, target)
        batches += cut(lengths, block, config.tokens, config.sentences)
    # Sorted, an epoch would go from short to long sentences, and the last updates would see long ones alone.
    return [batches[i] for i in rng.permutation(len(batches))]


def _sort(block: Indices, source: Lengths, target: Lengths) -> Lengths:
    """Sort rows in place by target, source (in alternating order), position; return the longer lengths, with </s>."""
    # By target length first, which keeps nearly all padding out of the decoder, where a position costs most. Where a
    # batch spans two target lengths, its sources are still of similar length. The position, which is random, breaks
    # ties, so that batches differ between epochs.
    sources, targets = source[block], target[block]
    order = np.lexsort((np.where(targets % 2, -sources, sources), targets))
    block[:] = block[order]
    return np.maximum(sources, targets)[order] + 1


def cut(lengths: npt.NDArray[np.integer], order: Indices, tokens: int, sentences: int = 0) -> list[Indices]:
    """Return consecutive runs of `order` with (sentences x longest) <= tokens; a longer sentence is a run by itself.

    lengths: of the sentences in `order`, </s> included.
    """
    batches, start = [], 0
    max_sentences = sentences or len(order)
    while start < len(order):
        # No run has more sentences than would fit if all were as long as the first one.
        candidates = lengths[start : start + max(1, min(max_sentences, tokens // int(lengths[start])))]
        padded_tokens = np.maximum.accumulate(candidates).astype(np.int64) * np.arange(1, len(candidates) + 1)
        end = start + max(1, int(np.searchsorted(padded_tokens, tokens, side="right")))
        batches.append(order[start:end])
        start = end
    return batches


def longest_first(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Return row numbers in batches of similar length, under a ceiling of padded tokens, the longest first.

    A row over the ceiling is a batch by itself.
    """
    # Longest first, so that a lack of memory shows at once.
    descending, order = _longest_first(lengths)
    return [rows.tolist() for rows in cut(descending, order, max(1, tokens))]


def _longest_first(lengths: Sequence[int]) -> tuple[Indices, Indices]:
    """Return the lengths in descending order, and their row numbers."""
    array = np.array(lengths, dtype=np.int64)
    order = np.argsort(-array, kind="stable")
    return array[order], order


def evenly_longest_first(lengths: Sequence[int], tokens: int, least: int, multiple: int) -> list[list[int]]:
    """Return `longest_first` batches, at least `least`, rounded up to a `multiple`, that are filled evenly."""
    descending, order = _longest_first(lengths)
    low, high = 0, max(1, tokens)
    count = -(-max(least, len(cut(descending, order, high))) // multiple) * multiple
    # The lowest ceiling that needs no more than `count` batches, by bisection: all workers then finish together.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if len(cut(descending, order, middle)) <= count else (middle, high)
    return [rows.tolist() for rows in cut(descending, order, high)]
