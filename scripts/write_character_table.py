"""Write the table of docs/data.md that says what cleaning makes of characters nobody sees, by trying all of them.

A test compares what it would write with what is there.
"""

import unicodedata
from collections import defaultdict
from itertools import groupby
from pathlib import Path

from tolka.text.characters import CharacterForm

DOCS = Path(__file__).resolve().parents[1] / "docs" / "data.md"
HEAD = "| characters below U+10000 | setting | what is made of them |\n|---|---|---|\n"
CATEGORIES = ("Cc", "Cf", "Zs", "Zl", "Zp")  # control and format characters, blanks, separators


def outcome(character: str) -> tuple[str, str]:
    """The setting that changes a character, and what becomes of it beside a Latin, a Thai and a Hebrew letter."""
    for setting, form in (("control", CharacterForm(control="strip")), ("blanks", CharacterForm(blanks="space"))):
        latin, thai, hebrew = (form.source(f"{letter}{character}{letter}")[1:-1] for letter in "aกא")
        made = latin, thai, hebrew
        if made != (character,) * 3:
            return setting, {
                (" ", " ", " "): "an ordinary blank",
                ("", "", ""): "nothing",
                ("", " ", ""): "an ordinary blank beside letters of Thai, Lao, Khmer or Burmese, else nothing",
                ("", "", character): "nothing, unless the text has letters that are written from right to left",
            }.get(made, "the character that Windows-1252 has there")
    return "", "the same"


def ranges(characters: list[str]) -> str:
    """U+2000 to U+200A, U+202F (narrow no-break space), ..."""
    found = []
    for _, group in groupby(enumerate(map(ord, characters)), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        name = unicodedata.name(chr(numbers[0]), "").lower()
        first = f"U+{numbers[0]:04X}"
        found.append(f"{first} to U+{numbers[-1]:04X}" if numbers[1:] else f"{first} ({name})" if name else first)
    return ", ".join(found)


def table() -> str:
    """The table, with a row for each outcome."""
    rows = defaultdict[tuple[str, str], list[str]](list)
    for character in map(chr, range(0x10000)):
        if unicodedata.category(character) in CATEGORIES and character != " ":
            rows[outcome(character)].append(character)
    return HEAD + "".join(
        f"| {ranges(characters)} | {f'`{setting}`' if setting else ''} | {what} |\n"
        for (setting, what), characters in rows.items()
    )


def main() -> None:
    """Replace the table in docs/data.md."""
    before, _, after = DOCS.read_text(encoding="utf-8").partition(HEAD)
    DOCS.write_text(before + table() + after[after.index("\n\n") + 1 :], encoding="utf-8")


if __name__ == "__main__":
    main()
