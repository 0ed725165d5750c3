"""Attention maps of finished translations, computed by forced decoding.

Shapes: S source positions with </s>, T target positions with </s>.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from tolka.data.batch import collate
from tolka.data.buckets import longest_first
from tolka.engines.torch_engine import TorchEngine
from tolka.errors import ConfigError
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation

_WEIGHTS_PER_BATCH = 2**20  # of one map and head: memory grows with the square of the lengths
_END, _BLANK = "</s>", "▁"


@dataclass(frozen=True)
class AttentionMap:
    """The attention map of one segment. rows, columns: subwords. weights: (rows, columns), each row sums to 1.

    name: of the layer ("decoder.2.cross"). It is the mean over the heads. Tags of languages are left out.
    """

    name: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "map": self.name,
            "head": "mean",
            "rows": self.rows,
            "columns": self.columns,
            "weights": [[round(weight, 6) for weight in row] for row in self.weights],
        }


class Inspected(Protocol):
    """The part of Translator that attention maps are computed with."""

    engine: TorchEngine
    tokenizer: Tokenizer

    @property
    def tokens(self) -> int:
        """The ceiling on a batch."""

    @property
    def direction(self) -> Direction:
        """The direction of a call that names none."""


class AttentionReader:
    """Computes the attention maps of translations: of the last decoder layer to the source, the mean over its heads."""

    def __init__(self, translator: Inspected) -> None:
        self._translator = translator

    def __call__(self, translations: Sequence[Translation | Candidate]) -> list[list[AttentionMap]]:
        """Return the maps of each translation, one for each segment, in order; none for a blank text.

        ConfigError for a model without cross-attention.
        """
        segments = [segment for translation in translations for segment in translation.segments]
        lengths = [max(len(source), len(target)) + 1 for source, target in segments]
        maps_by_number: dict[int, AttentionMap] = {}
        for batch in longest_first(lengths, self._translator.tokens):
            # Batches have a ceiling on tokens; that alone would let maps of long segments fill the memory.
            most = max(1, _WEIGHTS_PER_BATCH // lengths[batch[0]] ** 2)
            for numbers in (batch[start : start + most] for start in range(0, len(batch), most)):
                maps_by_number |= zip(numbers, self._read([segments[number] for number in numbers]), strict=True)
        ordered = iter(maps_by_number[number] for number in range(len(segments)))
        return [[next(ordered) for _ in translation.segments] for translation in translations]

    def finds_any(self, segment: tuple[list[int], list[int]]) -> bool:
        """Return whether the model has such maps, tried with one segment."""
        try:
            self._read([segment])
        except ConfigError:  # from `_read`, or from a model without `inspect`, as an ensemble
            return False
        return True

    def _read(self, segments: Sequence[tuple[list[int], list[int]]]) -> list[AttentionMap]:
        """Return the map of each segment, from one forward pass."""
        sources, targets = zip(*segments, strict=True)
        engine, tokenizer = self._translator.engine, self._translator.tokenizer
        tags = tokenizer.tags(self._translator.direction)
        with torch.inference_mode():
            attention = engine.model.eval().inspect(collate(sources, targets, tags).to(engine.device)).attention
        names = [name for name in attention if name.endswith("cross")]
        if not names:
            known = ", ".join(attention) or "no attention at all"
            raise ConfigError(f"attention maps are those of a decoder to the source, and this model has {known}")
        maps = []
        # (B, H, T, S) -> (B, T, S): the mean over the heads. Padding is cut off below.
        for source, target, weights in zip(sources, targets, attention[names[-1]].mean(dim=1).cpu(), strict=True):
            rows, columns = [*tokenizer.target_pieces(target), _END], [*tokenizer.source_pieces(source), _END]
            own = weights[len(tags.target) :, len(tags.source) :][: len(rows), : len(columns)]
            own = own / own.sum(dim=1, keepdim=True) if tags.source else own
            maps.append(AttentionMap(names[-1], rows, columns, own.tolist()))
        return maps


def word_alignment(maps: Sequence[AttentionMap]) -> list[tuple[int, int]]:
    """Return (source, target) for each target word and the source word with its largest weight, numbered from 0.

    maps: one per segment. Words are separated by blanks. Words of a segment whose source is blank are not aligned.
    """
    pairs: list[tuple[int, int]] = []
    sources = targets = 0  # words in earlier segments
    for each in maps:
        columns, rows = word_numbers(each.columns), word_numbers(each.rows)
        weights = np.array(each.weights)
        aligned = {number for number in rows if number is not None} if any(n is not None for n in columns) else set()
        # Weights are averaged over a target word's subwords and summed over a source word's (as Garg et al. 2019 do).
        for word in sorted(aligned):
            of_word = weights[[number == word for number in rows]].mean(axis=0)
            shares = np.zeros(1 + max(number for number in columns if number is not None))
            for weight, number in zip(of_word, columns, strict=True):
                if number is not None:
                    shares[number] += weight
            pairs.append((sources + int(shares.argmax()), targets + word))
        sources += 1 + max((number for number in columns if number is not None), default=-1)
        targets += 1 + max((number for number in rows if number is not None), default=-1)
    return pairs


def word_numbers(subwords: Sequence[str]) -> list[int | None]:
    """Return the number of the word that each subword belongs to, from 0; None for `</s>`."""
    numbers: list[int | None] = []
    word, at_boundary = -1, True
    for subword in subwords:
        if subword == _END:
            numbers.append(None)
            continue
        for character in subword:
            if character == _BLANK:
                at_boundary = True
            elif at_boundary:
                word, at_boundary = word + 1, False
        numbers.append(word + 1 if at_boundary else word)  # a blank alone belongs to the word that follows
    return numbers
