"""Split texts into sentences and too long sentences into parts, and join the translations.

Sentences are split by sentencex, which knows the marks and abbreviations of some 300 languages and needs no download.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from tolka.text.scripts import is_known, plain_code

SPLITS = ("auto", "sentences", "length", "never")
FEW = 0.1  # share of training lines with several sentences below which a model counts as one of single sentences

# A mark that ends a sentence or a clause, closing quotes and brackets, and the blank after it. The blank is a group,
# since it alone is removed where the text is cut. A full-width mark needs no blank.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(\s+)|[。！？；][”’）」』]*(\s*)")
_CLAUSE_END = re.compile(r"[,;:](\s+)|[，、：](\s*)")
_BLANK = re.compile(r"(\s+)")
_AROUND_MIDDLE = 100  # characters on either side in which a text without blanks is cut between grapheme clusters
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
    """Return the sentences of a text, each with the blanks after it: joined, they are the text.

    A part without a letter (a list's number, a stray mark) joins the sentence after it, or else the one before.
    """
    from sentencex import segment

    result, pending = list[str](), ""
    for part in segment(plain_code(language) or "en", text):
        pending += part
        if _LETTER.search(pending):
            result.append(pending)
            pending = ""
    if pending:
        result[-1:] = ["".join(result[-1:]) + pending]
    return result


def share_of_several(texts: Sequence[str], language: str) -> float:
    """Return the share of the texts that have several sentences."""
    return sum(len(sentences(text, language)) > 1 for text in texts) / max(len(texts), 1)


def best_cut(text: str) -> Cut | None:
    """Return the cut at a sentence mark, else a clause mark, else a blank, else between two grapheme clusters.

    Of several, the one nearest to the middle; None if there is none, or if one side would be empty.
    """
    middle = len(text) / 2
    for pattern, at_mark in ((_SENTENCE_END, True), (_CLAUSE_END, True), (_BLANK, False)):
        spans = [match.span(match.lastindex or 0) for match in pattern.finditer(text)]
        cuts = [Cut(start, end, at_mark) for start, end in spans if start > 0 and end < len(text)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut.end - middle))
    # A grapheme cluster (a letter with its accents, an emoji of several code points) is not split, except one of
    # hundreds of code points, which is split between two of them.
    begin = max(0, len(text) // 2 - _AROUND_MIDDLE)
    positions = [begin + match.start() for match in regex.finditer(r"\X", text[begin : begin + 2 * _AROUND_MIDDLE])]
    positions = [position for position in positions if begin < position < len(text)] or [len(text) // 2]
    nearest = min(positions, key=lambda position: abs(position - middle))
    return Cut(nearest, nearest, False) if 0 < nearest < len(text) else None


def separator_between(blank: str, at_mark: bool, target: str) -> str:
    """Return what joins the translations of two parts: the source's blank, adapted to the target language.

    A mark without a blank (a full-width one) gets one, except in Chinese and Japanese, which are written without blanks
    and drop a single one. target: a language code; an unknown one leaves the blank unchanged.
    """
    if not is_known(target):
        return blank
    if plain_code(target) in _UNSPACED:
        return "" if blank == " " else blank
    return blank or (" " if at_mark else "")
