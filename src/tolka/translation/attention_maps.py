"""Attention maps of finished translations, computed by forced decoding.

Shapes: S source positions with </s>, T target positions with </s>.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tolka.data.batch import collate
from tolka.data.buckets import longest_first
from tolka.errors import ConfigError
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.translation.options import ATTENTION_KINDS
from tolka.translation.options import AttentionConfig as AttentionConfig
from tolka.translation.results import Candidate, Translation
from tolka.translation.torch_engine import TorchEngine

_WEIGHTS_AT_ONCE = 2**20  # of one map and head, in a batch: memory grows with the square of the lengths
_BEGIN, _END, _BLANK = "<s>", "</s>", "▁"


@dataclass(frozen=True)
class AttentionMap:
    """The attention map of one segment. rows, columns: subwords. weights: (rows, columns), each row sums to 1.

    name: of the layer ("decoder.2.cross"). head: its number, or mean.
    """

    name: str
    head: str
    rows: list[str]
    columns: list[str]
    weights: list[list[float]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "map": self.name,
            "head": self.head,
            "rows": self.rows,
            "columns": self.columns,
            "weights": [[round(weight, 6) for weight in row] for row in self.weights],
        }


class Inspected(Protocol):
    """What attention maps are computed with: a Translator."""

    engine: TorchEngine
    tokenizer: Tokenizer

    @property
    def tokens(self) -> int:
        """The ceiling on a batch."""


class AttentionReader:
    """Computes the attention maps of translations."""

    def __init__(self, translator: Inspected, config: AttentionConfig) -> None:
        self._translator, self._config = translator, config

    def __call__(self, translations: Sequence[Translation | Candidate]) -> list[list[AttentionMap]]:
        """Return the maps of each translation: for every segment in turn one, or one per head; none for a blank text.

        ConfigError when the model has no such map.
        """
        segments = [segment for translation in translations for segment in translation.segments]
        lengths = [max(len(source), len(target)) + 1 for source, target in segments]
        maps_by_number: dict[int, list[AttentionMap]] = {}
        for batch in longest_first(lengths, self._translator.tokens):
            most = max(1, _WEIGHTS_AT_ONCE // lengths[batch[0]] ** 2)
            for numbers in (batch[start : start + most] for start in range(0, len(batch), most)):
                for number, maps in zip(numbers, self._read([segments[number] for number in numbers]), strict=True):
                    maps_by_number[number] = maps
        ordered = iter(maps_by_number[number] for number in range(len(segments)))
        return [[each for _ in translation.segments for each in next(ordered)] for translation in translations]

    def finds_any(self, segment: tuple[list[int], list[int]]) -> bool:
        """Return whether the model has a map of the kind asked for, tried with one segment."""
        batch = collate([segment[0]], [segment[1]]).to(self._translator.engine.device)
        try:
            with torch.inference_mode():
                attention = self._translator.engine.model.eval().inspect(batch).attention
        except ConfigError:  # as an ensemble says
            return False
        return bool(self._names(attention))

    def _read(self, segments: Sequence[tuple[list[int], list[int]]]) -> Iterator[list[AttentionMap]]:
        """Yield the maps of each segment, computed in one forward pass."""
        sources, targets = zip(*segments, strict=True)
        model = self._translator.engine.model.eval()
        with torch.inference_mode():
            attention = model.inspect(collate(sources, targets).to(self._translator.engine.device)).attention
        name = self._map_name(attention)
        weights = self._select_heads(name, attention[name]).cpu()
        for (source, target), padded in zip(segments, weights, strict=True):
            rows, columns = self._labels(source, target)
            maps = padded[:, : len(rows), : len(columns)].tolist()
            heads = ["mean"] if self._config.head == "mean" else [str(number) for number in range(len(maps))]
            if self._config.head.isdecimal():
                heads = [self._config.head]
            yield [AttentionMap(name, head, rows, columns, matrix) for head, matrix in zip(heads, maps, strict=True)]

    def _map_name(self, attention: dict[str, Tensor]) -> str:
        """Return the name of the map that the options select."""
        names = self._names(attention)
        if not names:
            known = ", ".join(attention) or "no attention at all"
            raise ConfigError(f"attention.kind={self._config.kind}: this model has no such map; it has {known}")
        try:
            return names[self._config.layer]
        except IndexError:
            raise ConfigError(
                f"attention.layer ({self._config.layer}): the layers with such a map are 0 to {len(names) - 1}, or "
                "-1 for the last"
            ) from None

    def _names(self, attention: dict[str, Tensor]) -> list[str]:
        """Return the names of all maps of the kind asked for."""
        stack, kind = ATTENTION_KINDS[self._config.kind]
        return [name for name in attention if name.startswith(stack) and name.endswith(kind)]

    def _select_heads(self, name: str, weights: Tensor) -> Tensor:
        """(B, H, T, S) -> the selected heads, or their mean."""
        if self._config.head == "mean":
            return weights.mean(dim=1, keepdim=True)
        if self._config.head == "all":
            return weights
        number = int(self._config.head)
        if number >= weights.size(1):
            raise ConfigError(
                f"attention.head ({number}): the heads of {name} are 0 to {weights.size(1) - 1}, or mean, or all"
            )
        return weights[:, number : number + 1]

    def _labels(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[str], list[str]]:
        """Return the subwords of rows and columns; rows are output tokens for `cross`, else input tokens."""
        tokenizer = self._translator.tokenizer
        source_subwords = [*tokenizer.source_pieces(source), _END]
        target_subwords = [*tokenizer.target_pieces(target), _END]
        if self._config.kind == "cross":
            return target_subwords, source_subwords
        if self._config.kind == "encoder":
            return source_subwords, source_subwords
        inputs = [_BEGIN, *target_subwords[:-1]]
        return inputs, inputs


def word_alignment(maps: Sequence[AttentionMap]) -> list[tuple[int, int]]:
    """Return (source, target) for each target word and the source word with its largest weight, numbered from 0.

    maps: one per segment, `cross`, of one head or the mean. Words are separated by blanks; weights are summed over a
    source word's subwords and averaged over a target word's (Garg et al. 2019 extract alignments likewise). Words of a
    segment whose source is blank are aligned to none.
    """
    pairs: list[tuple[int, int]] = []
    sources = targets = 0  # words in earlier segments
    for each in maps:
        columns, rows = word_numbers(each.columns), word_numbers(each.rows)
        weights = np.array(each.weights)
        aligned = {number for number in rows if number is not None} if any(n is not None for n in columns) else set()
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
    """Return the number of each subword's word; None for the end of the sentence."""
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
