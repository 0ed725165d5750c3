"""Split texts into sentences, and sentences that are too long into parts.

Sentences are split by sentencex, which knows the marks and abbreviations of some 300 languages and needs no download.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

import regex

from tolka.text.abbreviations import abbreviation_before
from tolka.text.scripts import UNSPACED, is_known, plain_code, sentence_blank

# A mark that ends a sentence or a clause, closing quotes and brackets, and the blank after it. The blank is a group,
# since it alone is removed at the cut. A full-width mark needs no blank.
_SENTENCE_END = re.compile(r"[.!?…।॥۔؟።][\"'”’)\]]*(\s+)|[。！？；។៕။][”’）」』]*(\s*)")
_CLAUSE_END = re.compile(r"[,;:](\s+)|[，、：](\s*)")
_BLANK = re.compile(r"(\s+)")
_AROUND_MIDDLE = 100  # characters on either side in which a text without blanks is cut between grapheme clusters
_LONGEST_END = 20  # characters of a part that decide where its sentence ends, blanks included
_LETTER = regex.compile(r"\p{L}")
_CLOSING = r"[\"'”’»“‘)\]）」』】》〉]"
# Where sentencex 1.0.30 does not split, though a reader would: at stops that it does not know (of Khmer, Tibetan and
# Greek, two Ethiopic separators, a bar for a danda), after a sentence in brackets, and after an ellipsis.
_MORE_STOPS = regex.compile(
    rf"[។៕༎\u037e]+{_CLOSING}*\s*|།\s+།\s*|፡፡\s*|(?<=[\p{{Devanagari}}\p{{Bengali}}\p{{Gurmukhi}}\p{{Oriya}}]\s?)\|\s+"
    rf"|^[(（][^()（）]*+(?<=[.!?。！？])[)）]\s*|…{_CLOSING}*\s+(?=\p{{Lu}})"
)
_CLOSING_FIRST = regex.compile(rf"(?:{_CLOSING}+(?=\s|$)|[）」』】》〉]+)\s*")  # which the part before should have
_LIST_NUMBER_LAST = re.compile(r"(?<=[.!?…]\s)\d{1,3}[.)]\s+$")  # which the part after should have
_SMALL = r"[[\p{Ll}]--[\p{Georgian}]]"  # a letter that is no capital, in a script that has them
# Two parts, with \0 between them, that are one sentence: after a quoted sentence that with who says it, and a number
# that counts something.
_GOES_ON = regex.compile(
    rf"(?V1)\d\.\s+\0{_SMALL}|\0[—–-]\s?{_SMALL}|[\"”»“’]\s+\0{_SMALL}|[\"”»“’]\0[[\p{{L}}]--[{UNSPACED}]]"
    r"|[\"”’」』]\0(?:\p{Han}{1,4}?[说說问問喊叫答]|と(?:言|い|思|叫|答|聞|問|呼|話|書|述|、)|って|など)"
)


@dataclass(frozen=True)
class Cut:
    """The place of a cut: the left part's end and the right part's start; between them is whitespace or nothing.

    at_mark: whether a sentence or clause ends there, so that the translation may need a blank that the text lacks.
    """

    end: int
    start: int
    at_mark: bool


def sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the blanks after it: joined, they are the text."""
    # `pending` joins what follows: a part without a letter (a list's number, a stray mark), or whose sentence goes on.
    # At the end of the text it joins what is before.
    result, pending, has_letter = list[str](), "", False
    code = plain_code(language) or "en"
    parts = list(_parts(text, code))
    for part, following in zip_longest(parts, parts[1:], fillvalue=""):
        pending += part
        # Only the new part is searched: with all of `pending`, 100 000 characters without a letter took 5 to 14 s.
        has_letter = has_letter or _LETTER.search(part) is not None
        if has_letter and not _goes_on(pending, following, code):
            result.append(pending)
            pending, has_letter = "", False
    if pending:
        result[-1:] = ["".join(result[-1:]) + pending]
    return result


def _parts(text: str, code: str) -> Iterator[str]:
    """Yield the sentences that sentencex finds, split at more stops; what is on the wrong side of a split is moved."""
    from sentencex import segment

    try:
        found = segment(code, text)
    except BaseException as error:
        # Its Rust code panics at some marks beside wide blanks, in Japanese for one.
        if type(error).__name__ != "PanicException":
            raise
        found = [text]
    before = ""
    more = ([0, *(match.end() for match in _MORE_STOPS.finditer(each)), len(each)] for each in found)
    for part in (each[a:b] for each, ends in zip(found, more, strict=True) for a, b in pairwise(ends) if a < b):
        if before and (closing := _CLOSING_FIRST.match(part)):
            before, part = before + closing[0], part[closing.end() :]
        if before and part:
            number = _LIST_NUMBER_LAST.search(before[-_LONGEST_END:])
            cut = len(before) - len(number[0] if number else "")
            yield before[:cut]
            part = before[cut:] + part
        before = part or before
    if before:
        yield before


def _goes_on(part: str, following: str, code: str) -> bool:
    """Return whether a part and what follows are one sentence, by the end of the one and the beginning of the other."""
    between, abbreviation = f"{part[-_LONGEST_END:]}\0{following[:_LONGEST_END]}", abbreviation_before(code)
    return bool(following) and any(each and each.search(between) for each in (_GOES_ON, abbreviation))


def share_of_several(texts: Sequence[str], language: str) -> float:
    """Return the share of the texts that have several sentences."""
    return sum(len(sentences(text, language)) > 1 for text in texts) / max(len(texts), 1)


def best_cut(text: str) -> Cut | None:
    """Return the cut at a sentence mark, else a clause mark, else a blank, else between two grapheme clusters.

    Of several it is the one nearest to the middle. None for a text that cannot be cut in two.
    """
    middle = len(text) / 2
    for pattern, at_mark in ((_SENTENCE_END, True), (_CLAUSE_END, True), (_BLANK, False)):
        spans = [match.span(match.lastindex or 0) for match in pattern.finditer(text)]
        cuts = [Cut(start, end, at_mark) for start, end in spans if start > 0 and end < len(text)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut.end - middle))
    # A grapheme cluster (a letter with its accents, an emoji of several code points) is not split, unless it has
    # hundreds of code points.
    begin = max(0, len(text) // 2 - _AROUND_MIDDLE)
    positions = [begin + match.start() for match in regex.finditer(r"\X", text[begin : begin + 2 * _AROUND_MIDDLE])]
    positions = [position for position in positions if begin < position < len(text)] or [len(text) // 2]
    nearest = min(positions, key=lambda position: abs(position - middle))
    return Cut(nearest, nearest, False) if 0 < nearest < len(text) else None


def separator_between(blank: str, at_mark: bool, target: str) -> str:
    """Return the text between the translations of two parts: the source's blank, adapted to the target language.

    target: a language code; an unknown one leaves the blank unchanged.
    """
    if not is_known(target):
        return blank
    if not sentence_blank(target):  # a line feed or several blanks are layout, and stay
        return "" if blank == " " else blank
    # A full-width mark has no blank after it, and the target language may need one.
    return blank or (" " if at_mark else "")
