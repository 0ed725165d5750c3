"""Translating documents without a model."""

import re
from collections.abc import Callable, Mapping

import numpy as np

from tolka.documents.base import Document
from tolka.documents.placing import SoftAlignment, place
from tolka.text.direction import UNKNOWN, Direction

EN_DE = Direction("en", "de")
Made = Mapping[str, str] | Callable[[str], str]


def identity(document: Document, direction: Direction = UNKNOWN) -> bytes:
    """Return a document whose every translation is its source."""
    return output_of(document, lambda source: source, direction)


def translated(document: Document, made: Made, direction: Direction = EN_DE, encoding: str = "utf-8") -> str:
    """Return a document with each text translated as `made` says, aligned word by word in their order."""
    return output_of(document, made, direction).decode(encoding)


def output_of(document: Document, made: Made, direction: Direction = EN_DE) -> bytes:
    """Return the bytes of a document in which texts are translated; a mapping leaves others as they are."""
    document.direction, parts = direction, list[bytes]()
    for text in document.texts():
        if not text.reason:
            target = made.get(text.source, text.source) if isinstance(made, Mapping) else made(text.source)
            place(text, target, word_alignment(text.source, target))
        parts.append(document.write(text))
    return b"".join([*parts, document.end()])


def word_alignment(source: str, target: str) -> SoftAlignment:
    """Return an alignment of the words of two texts, each to that at the same share of the way."""
    sources, targets = ([match.span() for match in re.finditer(r"\S+", side)] for side in (source, target))
    weights = np.zeros((len(targets), len(sources)))
    for number in range(len(targets)):
        weights[number, number * len(sources) // len(targets)] = 1
    return SoftAlignment(sources, targets, weights)
