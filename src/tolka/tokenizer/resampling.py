"""Random segmentations of words, drawn by a seed: the same in every process and on every machine."""

import math
import random
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from tolka.errors import ConfigError
from tolka.tokenizer.sentencepiece_model import model_proto
from tolka.tokenizer.special_tokens import BLANK

_CACHED_WORDS = 200_000  # text repeats its words
Word = tuple[int, ...]


class Resampler:
    """Draws new segmentations of id rows, for one SentencePiece model."""

    # SentencePiece can sample as well, but its generator cannot be seeded to repeat a result in another process.

    def __init__(self, processor: Any, allowed: Collection[int] | None = None) -> None:
        """allowed: ids that a segmentation may have; None = all. ConfigError if words have only one segmentation."""
        model = model_proto(processor.serialized_model_proto())
        kinds = {model.trainer_spec.BPE: self._drop_merges, model.trainer_spec.UNIGRAM: self._choose}
        if model.trainer_spec.model_type not in kinds:
            raise ConfigError(
                "batching.sampling draws other segmentations of the same words, and this tokenizer has only one way to "
                "cut them: choose tokenizer.type=bpe or unigram, or batching.sampling=0"
            )
        self._draw_any: Callable[[Word, float, random.Random], Sequence[int]] = kinds[model.trainer_spec.model_type]
        self._allowed = allowed
        self._processor = processor
        self._pieces = [piece.piece for piece in model.pieces]
        normal = model.SentencePiece.NORMAL
        self._ids = {piece.piece: number for number, piece in enumerate(model.pieces) if piece.type == normal}
        self._scores = [piece.score for piece in model.pieces]
        self._unsplittable = [piece.type != normal for piece in model.pieces]
        self._symbols = lru_cache(_CACHED_WORDS)(self._symbols_of)
        self._segmentations = lru_cache(_CACHED_WORDS)(self._segmentations_of)

    def __call__(self, rows: Sequence[Sequence[int]], amount: float, seed: int) -> list[list[int]]:
        """Return rows with other segmentations of the same text, as a function of the seed.

        amount: for BPE the probability that a merge is left out (BPE-dropout, Provilkov et al. 2020); for unigram the
        exponent of the probabilities of a word's 64 best segmentations (Kudo 2018), where less is more random.
        """
        rng = random.Random(seed)
        return [[piece for word in self._words(row) for piece in self._draw(word, amount, rng)] for row in rows]

    def _draw(self, word: Word, amount: float, rng: random.Random) -> Sequence[int]:
        """Draw a segmentation of the word; the given one instead of one with a subword that is not allowed."""
        drawn = self._draw_any(word, amount, rng)
        return drawn if self._allowed is None or all(piece in self._allowed for piece in drawn) else word

    def _words(self, row: Sequence[int]) -> list[Word]:
        """Split the row before each subword that begins a word."""
        starts = [i for i, piece in enumerate(row) if i and self._pieces[piece].startswith(BLANK)]
        return [tuple(row[start:end]) for start, end in pairwise([0, *starts, len(row)])]

    def _drop_merges(self, word: Word, amount: float, rng: random.Random) -> list[int]:
        """Merge the best pair of neighbours that is not dropped by chance, until none is left."""
        symbols = list(self._symbols(word))
        while True:
            best_score, best = -math.inf, -1
            for i in range(len(symbols) - 1):
                merged = self._merge(symbols[i], symbols[i + 1])
                if merged >= 0 and self._scores[merged] > best_score and rng.random() >= amount:
                    best_score, best = self._scores[merged], i
            if best < 0:
                return symbols
            symbols[best : best + 2] = [self._merge(symbols[best], symbols[best + 1])]

    def _merge(self, left: int, right: int) -> int:
        """Return the subword that two merge into; -1 if there is none."""
        if self._unsplittable[left] or self._unsplittable[right]:
            return -1
        return self._ids.get(self._pieces[left] + self._pieces[right], -1)

    def _symbols_of(self, word: Word) -> Word:
        """Return the symbols that merging starts from: characters, and subwords that are never split."""
        symbols: list[int] = []
        for piece in word:
            # Bytes, user-defined and unknown subwords, and those with a character that has no id.
            characters = [self._ids.get(character, -1) for character in self._pieces[piece]]
            symbols += [piece] if self._unsplittable[piece] or min(characters) < 0 else characters
        return tuple(symbols)

    def _choose(self, word: Word, amount: float, rng: random.Random) -> Sequence[int]:
        """Draw one of a word's segmentations, by its probability to the power of `amount`."""
        segmentations, scores = self._segmentations(word)
        best = max(scores)  # subtracted, so that exp does not underflow to 0 for all
        return rng.choices(segmentations, [math.exp(amount * (score - best)) for score in scores])[0]

    def _segmentations_of(self, word: Word) -> tuple[list[Word], list[float]]:
        """Return the word's best segmentations with their log-probabilities; only the given one if there is none."""
        if any(self._unsplittable[piece] for piece in word):
            return [word], [0.0]
        text = "".join(self._pieces[piece] for piece in word)
        # Those of another text are dropped: the model may normalise it.
        best = self._processor.nbest_encode(text.replace(BLANK, " "), nbest_size=64, out_type=int)
        segmentations = [tuple(row) for row in best if "".join(self._pieces[piece] for piece in row) == text] or [word]
        return segmentations, [sum(self._scores[piece] for piece in row) for row in segmentations]
