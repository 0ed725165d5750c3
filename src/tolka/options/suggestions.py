"""What may have been meant instead of a name that nobody knows."""

import difflib
from collections.abc import Iterable, Sequence

_FEW = 6  # names that a message lists


def did_you_mean(word: str, known: Iterable[str], all_of_them: str = "", prefix: str = "") -> str:
    """Return the sentence of `nearest`, or else one that lists some of the known words.

    all_of_them: what shows those that are not listed, as in "mt-train --help". prefix: of the proposals.
    """
    known = sorted(known)
    return nearest(word, known, prefix) or f" Known: {some_of(known, all_of_them)}."


def nearest(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return a sentence, after a space, that proposes the nearest known words; "" if none is near."""
    known = sorted(known)
    # Beside the nearest word only those that are nearly as near: most words have something in common.
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    near += [each for each in difflib.get_close_matches(word, known, n=3, cutoff=0.8) if each not in near]
    return proposal([prefix + each for each in near])


def proposal(words: Sequence[str]) -> str:
    """Return a sentence, after a space, that proposes words, the likeliest first; "" if there are none."""
    others = f" Or {' or '.join(words[1:])}?" if words[1:] else ""
    return f" Did you mean '{words[0]}'?{others}" if words else ""


def some_of(names: Sequence[str], all_of_them: str = "") -> str:
    """Join names with commas; of many, the first few and how many more there are."""
    if len(names) <= _FEW + 1:  # "and 1 more" is as long as a name
        return ", ".join(names)
    where = f" ({all_of_them} shows all)" if all_of_them else ""
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more{where}"
