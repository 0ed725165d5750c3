"""Text from outside, as file names and keys, that cannot be written, or would change what a terminal shows."""

import unicodedata

# Control characters, invisible ones that reorder text or hide in it, lone surrogates, and separators of lines.
_HIDDEN = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp"])
JOINERS = "\u200c\u200d"
"""Joiner and non-joiner: ordinary text in Persian, in the scripts of India, and in emoji."""


def is_utf8(name: str) -> bool:
    """Return whether the name can be written as text; Python reads bytes that are not UTF-8 as lone surrogates."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def printable(text: str, kept: str = "") -> str:
    """Return the text as messages show it: \\x1b for an escape character, \\u202e for one that reverses what follows.

    A byte e9 of a file name that is not UTF-8 is shown as \\udce9. kept: characters that are not escaped.
    """
    if text.isprintable():
        return text
    kept += JOINERS
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _HIDDEN and character not in kept
        else character
        for character in text
    )
