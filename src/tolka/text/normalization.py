"""What looks alike and is spelt in two ways: letters with their accents apart, Hangul in its parts (Unicode NFC)."""

from collections.abc import Mapping, Sequence
from unicodedata import is_normalized

from tolka.text.cleaning.steps import composed
from tolka.text.pairs import Pair

_REMEDY = "to score only what is read, compose the file first (for example: uconv -x any-nfc)"


def spelt(text: str, form: str) -> str:
    """The text in the form that CleaningConfig.unicode names."""
    return composed(text) if form == "nfc" else text


def normalized_pair(pair: Pair, form: str) -> Pair:
    """The same for both sides: the pair as a model trained with that setting reads and writes it."""
    return Pair(spelt(pair.source, form), spelt(pair.target, form), pair.flaw) if form == "nfc" else pair


def references_note(references: Sequence[str], form: str, name: str) -> str:
    """A line for the user where a model composes what it writes and references are not composed; else nothing.

    form: as in `spelt`. name: of the references. They are scored exactly as they are.
    """
    apart = _not_composed(references) if form == "nfc" else 0
    if not apart:
        return ""
    return (
        f"{apart} of {len(references)} references of {name} are not composed (Unicode NFC), and the model writes "
        "composed text (cleaning.unicode=nfc): BLEU, chrF and TER take references exactly as they are and count the "
        f"same letters as others; {_REMEDY}. PPL is that of the composed text"
    )


def unlike_note(texts: Mapping[str, Sequence[str]]) -> str:
    """A line for the user where one text has accents apart from their letters, and another has not; else nothing.

    texts: by name. The same words do not look the same to a metric.
    """
    apart = {name: _not_composed(lines) for name, lines in texts.items()}
    if len(set(apart.values())) == 1:
        return ""
    counts = ", ".join(f"{name}: {count} lines" for name, count in apart.items())
    return (
        f"letters and accents stand apart (no Unicode NFC) in {counts}; the same text then counts as another one; "
        f"{_REMEDY}"
    )


def _not_composed(lines: Sequence[str]) -> int:
    return sum(not is_normalized("NFC", line) for line in lines)
