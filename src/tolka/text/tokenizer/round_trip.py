"""The round trip: texts that tokenization and detokenization change."""

from collections.abc import Callable, Sequence

from tolka.text.pairs import Pair
from tolka.text.tokenizer.tokenizer import Tokenizer

_SHOWN = 2  # examples


def round_trip_notes(tokenizer: Tokenizer, pairs: Sequence[Pair], name: str) -> list[str]:
    """Return a note, with examples, for each side on which the round trip changes a text.

    Runs of spaces that become one are not counted.
    """
    sides = {
        "sources": ([pair.source for pair in pairs], tokenizer.encode_source, tokenizer.decode_source),
        "targets": ([pair.target for pair in pairs], tokenizer.encode_target, tokenizer.decode_target),
    }
    notes = []
    for side, (texts, encode, decode) in sides.items():
        lost = _lost(texts, encode, decode)
        if lost:
            examples = "; ".join(f"{before!r:.90} comes back as {after!r:.90}" for before, after in lost[:_SHOWN])
            notes.append(f"{len(lost)} of {len(texts)} {side} of {name} change in the tokenizer: {examples}")
    return notes


def _lost(
    texts: Sequence[str],
    encode: Callable[[Sequence[str]], list[list[int]]],
    decode: Callable[[Sequence[Sequence[int]]], list[str]],
) -> list[tuple[str, str]]:
    backs = decode(encode(texts))
    return [(text, back) for text, back in zip(texts, backs, strict=True) if _single(text) != _single(back)]


def _single(text: str) -> str:
    return " ".join(part for part in text.split(" ") if part)
