"""The alignment of the characters of a text and its translation, from a model's attention."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import numpy as np

from tolka.documents.placing import SoftAlignment
from tolka.errors import ConfigError
from tolka.translation.attention_maps import AttentionMap
from tolka.translation.results import Translation

if TYPE_CHECKING:
    from tolka.translation.translator import Translator

_BLANK = "▁"


def alignments_of(
    translator: "Translator[Any]", sources: Sequence[str], translations: Sequence[Translation]
) -> list[SoftAlignment | None]:
    """Return the alignment of each translation; None for a model that has none to give."""
    try:
        all_maps = translator.attention(translations) if translations else []
    except ConfigError:  # an ensemble
        return [None] * len(translations)
    triples = zip(sources, translations, all_maps, strict=True)
    return [_alignment(source, translation.text, maps) for source, translation, maps in triples]


def _alignment(source: str, target: str, maps: Sequence[AttentionMap]) -> SoftAlignment | None:
    """Join the maps of a text's segments."""
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
