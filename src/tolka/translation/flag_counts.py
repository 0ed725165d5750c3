"""How many translations of a file have each flag, beside how many of its references, which people wrote."""

from collections.abc import Sequence
from typing import NamedTuple

from tolka.metrics.tables import Form, table
from tolka.model_directory.verify import LengthRatio
from tolka.translation.flags import FLAGS, text_flags

_MOST = 2000  # lines, some tenths of a millisecond each
_NAMED = 5  # lines of a flag


class Flagged(NamedTuple):
    """A flag of `text_flags`: share of translations and of references that have it, and the first lines, from 1."""

    flag: str
    share: float
    of_references: float
    lines: list[int]


def count_flags(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], ratio: LengthRatio | None = None
) -> list[Flagged]:
    """Return the flags that some translation has, of lines spread evenly over the file; the rarest one last."""
    rows = range(0, len(sources), max(1, len(sources) // _MOST))
    found: dict[str, list[int]] = {flag: [] for flag in FLAGS}
    of_references = dict.fromkeys(FLAGS, 0)
    for row in rows:
        for flag in text_flags(sources[row], translations[row], ratio):
            found[flag].append(row + 1)
        for flag in text_flags(sources[row], references[row], ratio):
            of_references[flag] += 1
    flagged = [
        Flagged(flag, len(lines) / len(rows), of_references[flag] / len(rows), lines[:_NAMED])
        for flag, lines in found.items()
        if lines
    ]
    return sorted(flagged, key=lambda each: -each.share)


def flag_table(flagged: Sequence[Flagged], form: Form = "text") -> str:
    """Return a table of what to check."""
    rows = [
        [each.flag, f"{each.share:.1%}", f"{each.of_references:.1%}", ", ".join(map(str, each.lines))]
        for each in flagged
    ]
    return table(rows, ["to check", "translations", "references", "lines"], "lrrl", form)
