"""Attention maps of finished translations, computed by forced decoding; of models without attention, gradients.

The alignment of words and that of characters are read from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from tolka.data.buckets import longest_first
from tolka.documents.placing import SoftAlignment
from tolka.engines.engine import GRADIENT, Engine
from tolka.errors import ConfigError
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer
from tolka.translation.results import Candidate, Translation

_WEIGHTS_PER_BATCH = 2**20  # of one map and head: memory grows with the square of the lengths
_END, _BLANK = "</s>", "▁"


@dataclass(frozen=True)
class AttentionMap:
    """The attention map of one segment. rows, columns: subwords. weights: (rows, columns), each row sums to 1.

    name: of the layer ("decoder.2.cross"), of which it is the mean over the heads, or GRADIENT. Tags of languages are
    left out.
    """

    name: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "map": self.name,
            **({} if self.name == GRADIENT else {"head": "mean"}),
            "rows": self.rows,
            "columns": self.columns,
            "weights": [[round(weight, 6) for weight in row] for row in self.weights],
        }


def attention_maps(
    engine: Engine,
    tokenizer: Tokenizer,
    direction: Direction,
    translations: Sequence[Translation | Candidate],
    tokens: int,
    *,
    with_gradients: bool,
) -> list[list[AttentionMap]]:
    """Return the maps of each translation, one for each segment, in order; none for a blank text.

    tokens: ceiling on a batch. with_gradients: as for `Engine.attention`, which raises ConfigError.
    """
    segments = [segment for translation in translations for segment in translation.segments]
    lengths = [max(len(source), len(target)) + 1 for source, target in segments]
    tags, maps_by_number = tokenizer.tags(direction), dict[int, AttentionMap]()
    for batch in longest_first(lengths, tokens):
        # Batches have a ceiling on tokens; that alone would let maps of long segments fill the memory.
        most = max(1, _WEIGHTS_PER_BATCH // lengths[batch[0]] ** 2)
        for numbers in (batch[start : start + most] for start in range(0, len(batch), most)):
            sources, targets = ([segments[number][side] for number in numbers] for side in (0, 1))
            name, all_weights = engine.attention(sources, targets, tags, with_gradients=with_gradients)
            for number, source, target, weights in zip(numbers, sources, targets, all_weights, strict=True):
                rows, columns = [*tokenizer.target_pieces(target), _END], [*tokenizer.source_pieces(source), _END]
                # Padding is cut off here.
                own = weights[len(tags.target) :, len(tags.source) :][: len(rows), : len(columns)]
                own = own / own.sum(axis=1, keepdims=True) if tags.source else own
                maps_by_number[number] = AttentionMap(name, rows, columns, own.tolist())
    ordered = iter(maps_by_number[number] for number in range(len(segments)))
    return [[next(ordered) for _ in translation.segments] for translation in translations]


def word_alignment(maps: Sequence[AttentionMap]) -> list[tuple[int, int]]:
    """Return (source, target) for each target word and the source word with its largest weight, numbered from 0.

    maps: one per segment. Words are separated by blanks. Words of a segment whose source is blank are not aligned.
    ConfigError for maps of gradients, which are too dim for that.
    """
    if any(each.name == GRADIENT for each in maps):
        raise ConfigError("word alignments are read from attention, and this model has no attention at all")
    pairs: list[tuple[int, int]] = []
    sources = targets = 0  # words in earlier segments
    for each in maps:
        columns, rows = word_numbers(each.columns[:-1]), word_numbers(each.rows[:-1])  # without </s>
        weights = np.array(each.weights)[:-1, :-1]
        # Weights are averaged over a target word's subwords and summed over a source word's (as Garg et al. 2019 do).
        for word in sorted({*rows}) if columns else ():
            shares = np.bincount(columns, weights[np.equal(rows, word)].mean(axis=0))
            pairs.append((sources + int(shares.argmax()), targets + word))
        sources += 1 + max(columns, default=-1)
        targets += 1 + max(rows, default=-1)
    return pairs


def word_numbers(subwords: Sequence[str]) -> list[int]:
    """Return the number of the word that each subword belongs to, from 0. subwords: without `</s>`."""
    numbers: list[int] = []
    word, at_boundary = -1, True
    for subword in subwords:
        for character in subword:
            if character == _BLANK:
                at_boundary = True
            elif at_boundary:
                word, at_boundary = word + 1, False
        numbers.append(word + 1 if at_boundary else word)  # a blank alone belongs to the word that follows
    return numbers


def character_alignment(source: str, target: str, maps: Sequence[AttentionMap]) -> SoftAlignment | None:
    """Return the alignment of a text and its translation, from the maps of its segments; None without any."""
    if not maps:
        return None
    columns, rows = ([piece for each in maps for piece in getattr(each, side)[:-1]] for side in ("columns", "rows"))
    weights, row, column = np.zeros((len(rows), len(columns))), 0, 0
    for each in maps:
        part = np.array(each.weights)[:-1, :-1]  # without </s>
        weights[row : row + part.shape[0], column : column + part.shape[1]] = part
        row, column = row + part.shape[0], column + part.shape[1]
    return SoftAlignment(
        _spans(columns, source), _spans(rows, target), weights / weights.sum(axis=1, keepdims=True).clip(1e-9)
    )


def _spans(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return from which to which character of a text each of its subwords is."""
    joined = "".join(pieces).replace(_BLANK, " ")
    # A tokenizer normalises, so that some characters may be others.
    matcher = SequenceMatcher(None, joined, text, autojunk=False)
    places = [0] * (len(joined) + 1)
    for _, a, b, c, d in matcher.get_opcodes():
        for place in range(a, b):
            places[place] = min(c + place - a, d)
    places[len(joined)] = len(text)
    spans, end = list[tuple[int, int]](), 0
    for piece in pieces:
        start, end = end, end + len(piece)
        bare = start + len(piece) - len(piece.lstrip(_BLANK))
        spans.append((places[bare], places[end]))
    return spans
