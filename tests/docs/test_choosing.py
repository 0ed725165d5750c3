"""The page on how settings are chosen shows the table that they are chosen by."""

import math
from dataclasses import astuple
from pathlib import Path

from tolka.auto.rules import SIZES, TUNING_SIZES, TextSize, TuningSize

PAGE = Path(__file__).parents[2] / "docs" / "choosing.md"

ALL: list[TextSize | TuningSize] = [*SIZES["rnn"], *SIZES["transformer"], *TUNING_SIZES]


def row(size: TextSize | TuningSize) -> str:
    most, *others = astuple(size)
    first = "more" if most == math.inf else f"{most:,}".replace(",", " ")
    return f"| {first} | {' | '.join(f'`{each}`' if isinstance(each, str) else f'{each:g}' for each in others)} |"


def test_every_row_of_the_rules_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    assert [size for size in ALL if row(size) not in text] == []


if __name__ == "__main__":
    print("\n".join(map(row, ALL)))
