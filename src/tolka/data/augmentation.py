"""Augmentation: in each epoch another few of the pairs are read with noise, as text that people write may have it."""

import random
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tolka.data.rewriting import Rewriter, Rows, seeds_of
from tolka.distributed.ranks import ALONE, Ranks
from tolka.text.direction import Direction
from tolka.text.noise import JOIN, joined, noises
from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer


class Augmenter(Rewriter):
    """Changes some pairs of an epoch, as a function of (seed, epoch) and of the store alone."""

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
                    pair = joined([pair, second], self._directions[parts[row]])
                elif pair.source and pair.target:
                    pair = self._noises[parts[row]][kind](pair, draw)
                changed[row] = replace(pair, source=head + pair.source)
        new_sources, new_targets = list(sources), list(targets)
        for row, pair in changed.items():
            (source,), (target,) = (
                self._tokenizer.encode_source([pair.source]),
                self._tokenizer.encode_target([pair.target]),
            )
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
