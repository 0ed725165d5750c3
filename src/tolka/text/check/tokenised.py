"""Text that Moses' tokenizer or a like one has split: its punctuation stands apart, and some characters are escaped."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tolka.text.pairs import Pair

# French sets a blank before ! ? ; and :, so that only full stops, commas and their like in other scripts count.
_ESCAPED = r"&(?:apos|quot|#124|#91|#93);|@[-/]@"
_APART = re.compile(rf"(?<=[^\s.,]) (?:[.,。，、।۔]|\.\.\.)(?: |$)|{_ESCAPED}")
_MARKS = re.compile(rf"[.,।۔](?:\s|$)|[。，、]|{_ESCAPED}")
_MOST, _FEW, _LEAST_LINES = 0.5, 0.1, 10


def share_of_tokenised(texts: Iterable[str]) -> float | None:
    """Return in which share of the texts with punctuation it stands apart; None if too few have any."""
    found = [bool(_APART.search(text)) for text in texts if _MARKS.search(text)]
    return sum(found) / len(found) if len(found) >= _LEAST_LINES else None


def tokenised_unlike(training: Sequence[Pair], held_out: Mapping[str, Sequence[Pair]]) -> Iterator[str]:
    """Yield a sentence for each side of which training text is tokenised, and held-out text is not, or conversely."""
    for side in ("source", "target"):
        trained = share_of_tokenised(getattr(pair, side) for pair in training)
        shares = {name: share_of_tokenised(getattr(pair, side) for pair in pairs) for name, pairs in held_out.items()}
        plain = ", ".join(name for name, share in shares.items() if share is not None and share < _FEW)
        split = ", ".join(name for name, share in shares.items() if share is not None and share > _MOST)
        if trained is not None and trained > _MOST and plain:
            yield _in_words(f"{side} of the training text", trained, plain)
        if trained is not None and trained < _FEW and split:
            yield _in_words(f"{side} of {split}", max(filter(None, shares.values())), "the training text")


def _in_words(what: str, share: float, other: str) -> str:
    return (
        f"the {what} is tokenised, as by Moses (in {share:.0%} of the lines punctuation stands apart, as in 'red .'), "
        f"and that of {other} is not: take the text as it was before, or undo it (sacremoses detokenize); nothing need "
        "be tokenised for SentencePiece"
    )
