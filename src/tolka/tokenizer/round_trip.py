"""Texts that change when they are tokenized and detokenized."""

from collections.abc import Sequence

from tolka.text.pairs import Pair
from tolka.tokenizer.tokenizer import Tokenizer


def round_trip_notes(tokenizer: Tokenizer, pairs: Sequence[Pair], name: str) -> list[str]:
    """Return a note, with examples, for each side on which the round trip changes a text."""
    sides = {
        "sources": ([pair.source for pair in pairs], tokenizer.encode_source, tokenizer.decode_source),
        "targets": ([pair.target for pair in pairs], tokenizer.encode_target, tokenizer.decode_target),
    }
    notes = []
    for side, (texts, encode, decode) in sides.items():
        both = zip(texts, decode(encode(texts)), strict=True)
        # SentencePiece makes one space of several, which loses nothing.
        changes = [(before, after) for before, after in both if _single_spaced(before) != _single_spaced(after)]
        if changes:
            examples = "; ".join(f"{before!r:.90} comes back as {after!r:.90}" for before, after in changes[:2])
            notes.append(f"{len(changes)} of {len(texts)} {side} of {name} change in the tokenizer: {examples}")
    return notes


def _single_spaced(text: str) -> str:
    return " ".join(part for part in text.split(" ") if part)
