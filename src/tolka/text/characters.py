"""Characters that a reader does not see or takes for a blank: what becomes of them, in training text and in input.

docs/data.md has the table of all of them, which `scripts/write_character_table.py` makes from this file.
"""

import re
import unicodedata
from dataclasses import dataclass, replace

import regex

from tolka.text.direction import UNKNOWN, Direction
from tolka.text.pairs import Pair
from tolka.text.typography import standard

# The control characters U+0080 to U+009F are hardly ever meant: the text is Windows-1252 that was read as ISO-8859-1.
# The WHATWG reads ISO-8859-1 as Windows-1252 for that reason. U+0085, the next line, is among the breaks.
_WINDOWS_1252 = re.compile("[\x80-\x84\x86-\x9f]")
# What ends a line, a cell or a record in some program; the carriage return included, as sacreBLEU has it.
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")
# Written without blanks between words, where a zero width space is between words; elsewhere it is inside of one.
_WITHOUT_BLANKS = r"[\p{Khmer}\p{Lao}\p{Myanmar}\p{Thai}]"
_BETWEEN_WORDS = regex.compile(rf"(?<={_WITHOUT_BLANKS})\u200b|\u200b(?={_WITHOUT_BLANKS})")
# Marks, embeddings, overrides and isolates: they order marks and digits beside right-to-left letters, and only there.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = regex.compile(r"(?=\p{L})[\p{Bidi_Class=R}\p{Bidi_Class=AL}]")
# Other control characters; soft hyphens, joiners of words, invisible operators, deprecated ones and byte order marks.
# Not U+200C and U+200D (Persian, Hindi and emoji need them), nor what is seen, as the signs of Arabic numbers.
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f\xad\u200b\u2060-\u2065\u206a-\u206f\ufeff]")
_BLANKS = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")  # of the category Zs, all but U+0020


CHARACTER_SETTINGS = ("unicode", "control", "blanks", "typography")
"""The settings of cleaning that decide the form of characters."""


@dataclass(frozen=True)
class CharacterForm:
    """The characters that a model knows: what cleaning made of its training text, and what its input is made.

    The fields but the last are those of CleaningConfig. direction: of the texts, whose languages decide the typography.
    """

    unicode: str = "keep"
    control: str = "keep"
    blanks: str = "keep"
    typography: str = "keep"
    direction: Direction = UNKNOWN

    def of(self, direction: Direction) -> "CharacterForm":
        """Return the form in another direction."""
        return self if self.direction == direction else replace(self, direction=direction)

    def source(self, text: str) -> str:
        """Return a source text in this form, without whitespace around it."""
        return self._apply(text, self.blanks != "keep", self.direction.source).strip()

    def source_lines(self, text: str) -> str:
        """Return a source text of several lines in this form; line feeds and the blanks around them stay."""
        if self.control != "keep":
            text = text.replace("\r\n", "\n")
        return "\n".join(self._apply(line, self.blanks != "keep", self.direction.source) for line in text.split("\n"))

    def target(self, text: str) -> str:
        """Return a target text in this form, without whitespace around it."""
        return self._apply(text, self.blanks == "space", self.direction.target).strip()

    def pair(self, pair: Pair) -> Pair:
        """Return the pair in this form; the same object if it is already."""
        source, target = self.source(pair.source), self.target(pair.target)
        return pair if source == pair.source and target == pair.target else Pair(source, target, pair.flaw)

    def _apply(self, text: str, has_plain_blanks: bool, language: str) -> str:
        if not text.isprintable():  # nearly all are: they have no control or format characters, and no blank but U+0020
            if self.control != "keep":
                text = visible_text(text)
            if has_plain_blanks:
                text = _BLANKS.sub(" ", text)
        if self.unicode == "nfc":  # after the others, as an invisible character may stand before an accent
            text = unicodedata.normalize("NFC", text)
        return standard(text, language) if self.typography == "standard" else text


KEEP = CharacterForm()
"""Every character as it is, but for whitespace around a text."""


def visible_text(text: str) -> str:
    """Return the text that a reader sees: breaks become blanks, and characters that nobody sees vanish."""
    # Windows-1252 has no character for five of these numbers: they vanish.
    text = _WINDOWS_1252.sub(lambda control: control[0].encode("latin-1").decode("cp1252", "ignore"), text)
    text = _BREAKS.sub(" ", text)
    if "\u200b" in text:
        text = _BETWEEN_WORDS.sub(" ", text)
    if not _RIGHT_TO_LEFT.search(text):
        text = _DIRECTION.sub("", text)
    return _UNSEEN.sub("", text)
