"""Unicode normalisation (NFC): composed and decomposed characters look alike, but compare as different."""

from collections.abc import Mapping, Sequence
from unicodedata import is_normalized

_REMEDY = "to score only what is read, compose the file first (for example: uconv -x any-nfc)"


def references_note(references: Sequence[str], form: str, name: str) -> str:
    """Return a note if a model of composed characters (form "nfc") is scored with decomposed references; else ""."""
    decomposed = _not_composed(references) if form == "nfc" else 0
    if not decomposed:
        return ""
    return (
        f"{decomposed} of {len(references)} references of {name} are not composed (Unicode NFC), and the model writes "
        "composed text (cleaning.unicode=nfc): BLEU, chrF and TER take references exactly as they are and count the "
        f"same letters as others; {_REMEDY}. PPL is that of the composed text"
    )


def mixed_forms_note(texts: Mapping[str, Sequence[str]]) -> str:
    """Return a note if not as many lines of one text have decomposed accents as of another; else "". texts: by name."""
    decomposed = {name: _not_composed(lines) for name, lines in texts.items()}
    if len(set(decomposed.values())) == 1:
        return ""
    counts = ", ".join(f"{name}: {count} lines" for name, count in decomposed.items())
    return (
        f"letters and accents stand apart (no Unicode NFC) in {counts}; the same text then counts as another one; "
        f"{_REMEDY}"
    )


def _not_composed(lines: Sequence[str]) -> int:
    return sum(not is_normalized("NFC", line) for line in lines)
