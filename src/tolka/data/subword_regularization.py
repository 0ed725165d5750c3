"""Subword regularisation (Kudo 2018): each epoch reads another segmentation of the same words."""

from tolka.data.rewriting import Rewriter, Rows, seeds_of
from tolka.distributed.ranks import ALONE, Ranks
from tolka.tokenizer.tokenizer import Tokenizer


class SubwordSampler(Rewriter):
    """Draws an epoch's segmentations.

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
