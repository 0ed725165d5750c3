"""Splitting a text into sentences, or where it is too long, and joining the translations.

Sentences are sentencex's, which knows the marks and abbreviations of some 300 languages and needs no download.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from tolka.text.scripts import is_known, plain_code

SPLITS = ("auto", "sentences", "length", "never")
FEW = 0.1  # share of training lines with several sentences below which a model counts as one of single sentences

# A mark that ends a sentence or a clause, the quotes and brackets that close after it, and the blank (a group: it alone
# is left out where the text is cut). A full-width mark needs no blank.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(\s+)|[。！？；][”’）」』]*(\s*)")
_CLAUSE_END = re.compile(r"[,;:](\s+)|[，、：](\s*)")
_BLANK = re.compile(r"(\s+)")
_AROUND_MIDDLE = 100  # characters in which a text without blanks is cut between two of what a reader calls characters
_LETTER = regex.compile(r"\p{L}")
_UNSPACED = {"zh", "cmn", "yue", "wuu", "lzh", "ja"}  # written without a blank between two sentences


@dataclass(frozen=True)
class Cut:
    """Where a text is split: the left part's end and the right part's start, with whitespace or nothing between them.

    at_mark: whether a sentence or clause ends there, so that a blank may be wanted where the text has none.
    """

    end: int
    start: int
    at_mark: bool


def sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the whitespace after it, so that they concatenate to the text.

    What has no letter (a list's number, a stray mark) goes with the sentence after it, or else with the one before.
    """
    from sentencex import segment

    found, waiting = list[str](), ""
    for piece in segment(plain_code(language) or "en", text):
        waiting += piece
        if _LETTER.search(waiting):
            found.append(waiting)
            waiting = ""
    if waiting:
        found[-1:] = ["".join(found[-1:]) + waiting]
    return found


def share_of_several(texts: Sequence[str], language: str) -> float:
    """Return the share of the texts that have several sentences."""
    return sum(len(sentences(text, language)) > 1 for text in texts) / max(len(texts), 1)


def best_cut(text: str) -> Cut | None:
    """Return where to split: at a sentence mark, else a clause mark, else whitespace, else between two characters.

    Of several, the one nearest to the middle; None when there is none, or when it would leave a side empty.
    """
    middle = len(text) / 2
    for pattern, at_mark in ((_SENTENCE_END, True), (_CLAUSE_END, True), (_BLANK, False)):
        spans = [match.span(match.lastindex or 0) for match in pattern.finditer(text)]
        cuts = [Cut(start, end, at_mark) for start, end in spans if start > 0 and end < len(text)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut.end - middle))
    # A letter and its accents, or an emoji of several code points (a grapheme cluster), stay together; where the middle
    # is one of hundreds of code points, it is cut between two of these.
    begin = max(0, len(text) // 2 - _AROUND_MIDDLE)
    places = [begin + match.start() for match in regex.finditer(r"\X", text[begin : begin + 2 * _AROUND_MIDDLE])]
    places = [place for place in places if begin < place < len(text)] or [len(text) // 2]
    place = min(places, key=lambda place: abs(place - middle))
    return Cut(place, place, False) if 0 < place < len(text) else None


def rejoining(blank: str, at_mark: bool, target: str) -> str:
    """Return what stands between the translations of two parts: the source's whitespace, if the target is written so.

    A mark without a blank (a full-width one) gets one, unless the target language is written without, as Chinese and
    Japanese, which drop a single one. target: its code; one that is not known leaves the blank as it is.
    """
    if not is_known(target):
        return blank
    if plain_code(target) in _UNSPACED:
        return "" if blank == " " else blank
    return blank or (" " if at_mark else "")
