"""Tables in plain text, for terminals and logs."""

import unicodedata
from collections.abc import Sequence
from typing import Literal

from tolka.metrics.scores import Score

Form = Literal["text", "markdown"]


def table(rows: Sequence[Sequence[str]], header: Sequence[str], align: str, form: Form = "text") -> str:
    """Lay out rows of one-line cells under a header and a rule; `align` has one letter per column, "l" or "r".

    Columns stay in line for wide East Asian characters and combining marks. No trailing blanks, no newline at the end.
    form: markdown is GitHub's.
    """
    if form == "markdown":
        rule = ["---:" if side == "r" else "---" for side in align]
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in (header, rule, *rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in escaped)
    widths = [max(map(display_width, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(row, widths, align) for row in (header, rule, *rows))


def score_table(scores: Sequence[Score], form: Form = "text") -> str:
    """Return a table of scores: name, two decimals, 95% interval, with the signatures below."""
    columns = 2 if all(score.interval is None for score in scores) else 3
    rows = [
        [score.name, f"{score.value:.{score.digits}f}", interval_text(score.interval, score.digits)][:columns]
        for score in scores
    ]
    scored = table(rows, ["metric", "score", "95% interval"][:columns], "lrl"[:columns], form)
    return "\n".join((scored, "", *(f"{score.name}: {score.signature}" for score in scores)))


def interval_text(interval: Sequence[float] | None, digits: int = 2) -> str:
    """Return '10.00 to 14.00', or "" without an interval."""
    return f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}" if interval else ""


def display_width(text: str) -> int:
    """Return the terminal columns of a text: two for a wide character, none for a combining mark."""
    # NFC first: a Hangul syllable spelt as two or three letters is shown, and counted, as the one it composes to.
    # Mn and Me are marks drawn over the character before; Cf are joiners and direction marks, drawn nowhere.
    drawn = [
        each for each in unicodedata.normalize("NFC", text) if unicodedata.category(each) not in ("Mn", "Me", "Cf")
    ]
    return len(drawn) + sum(unicodedata.east_asian_width(each) in ("W", "F") for each in drawn)


def _line(cells: Sequence[str], widths: Sequence[int], align: str) -> str:
    padded = []
    for cell, width, side in zip(cells, widths, align, strict=True):
        blanks = " " * (width - display_width(cell))
        padded.append(cell + blanks if side == "l" else blanks + cell)
    return "  ".join(padded).rstrip()
