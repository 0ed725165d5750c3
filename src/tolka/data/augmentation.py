"""Augmentation: in each epoch another few of the pairs are read with noise, as text that people write may have it."""

import random
from collections.abc import Mapping

from tolka.data.rewriting import Rewriter, Rows, seeds_of
from tolka.distributed.ranks import ALONE, Ranks
from tolka.text.noise import JOIN, NOISES
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer


class Augmenter(Rewriter):
    """Changes some pairs of an epoch, as a function of (seed, epoch) and of the store alone."""

    def __init__(
        self, tokenizer: Tokenizer, rates: Mapping[str, float], seed: int, max_length: int, ranks: Ranks = ALONE
    ) -> None:
        """rates: share of the pairs that gets each kind of noise. max_length: a pair that gets longer stays."""
        super().__init__("adding noise", seed, max_length, ranks)
        self._tokenizer, self._rates = tokenizer, dict(rates)

    def _rewritten(self, sources: Rows, targets: Rows, seed: list[int]) -> tuple[Rows, Rows]:
        draw, changed = random.Random(*seeds_of(seed, 1)), dict[int, Pair]()
        for row in range(len(sources)):
            if kind := self._drawn(draw):
                pair = self._pair(sources[row], targets[row])
                if kind == JOIN:
                    other = draw.randrange(len(sources))
                    second = self._pair(sources[other], targets[other])
                    changed[row] = Pair(f"{pair.source} {second.source}", f"{pair.target} {second.target}")
                elif pair.source and pair.target:
                    changed[row] = NOISES[kind](pair, draw)
        new_sources, new_targets = list(sources), list(targets)
        for row, pair in changed.items():
            (source,), (target,) = (
                self._tokenizer.encode_source([pair.source]),
                self._tokenizer.encode_target([pair.target]),
            )
            if source and target:
                new_sources[row], new_targets[row] = source, target
        return new_sources, new_targets

    def _pair(self, source: list[int], target: list[int]) -> Pair:
        (one,), (other,) = self._tokenizer.decode_source([source]), self._tokenizer.decode_target([target])
        return Pair(one, other)

    def _drawn(self, draw: random.Random) -> str:
        """Return the noise of a pair; "" for none."""
        left = draw.random()
        for kind, rate in self._rates.items():
            left -= rate
            if left < 0:
                return kind
        return ""
