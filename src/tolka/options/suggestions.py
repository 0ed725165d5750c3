"""What may have been meant instead of a name that nobody knows."""

import difflib
from collections.abc import Iterable, Sequence

_FEW = 6  # names that a message lists


def did_you_mean(word: str, known: Iterable[str], all_of_them: str = "", prefix: str = "") -> str:
    """Return a sentence that proposes the nearest known words, or lists some if none is near. It begins with a space.

    all_of_them: what shows those that are not listed, as in "mt-train --help". prefix: of the proposals.
    """
    known = sorted(known)
    if near := nearest(word, known):
        # Beside the nearest word only those that are nearly as near: most words have something in common.
        others = [prefix + each for each in difflib.get_close_matches(word, known, n=3, cutoff=0.8) if each != near]
        return f" Did you mean '{prefix}{near}'?" + (f" Or {' or '.join(others)}?" if others else "")
    return f" Known: {some_of(known, all_of_them)}."


def nearest(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return the known word that is most like another; "" if none is. least: likeness, 1 for an equal word."""
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=least)), "")


def some_of(names: Sequence[str], all_of_them: str = "") -> str:
    """Join names with commas; of many, the first few and how many more there are."""
    if len(names) <= _FEW + 1:  # "and 1 more" is as long as a name
        return ", ".join(names)
    where = f" ({all_of_them} shows all)" if all_of_them else ""
    return f"{', '.join(names[:_FEW])} and {len(names) - _FEW} more{where}"
