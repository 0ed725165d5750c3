"""Split texts into sentences, and sentences that are too long into parts.

Sentences are split by sentencex, which knows the marks and abbreviations of some 300 languages and needs no download.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

import regex

from tolka.text.scripts import is_known, plain_code

# A mark that ends a sentence or a clause, closing quotes and brackets, and the blank after it. The blank is a group,
# since it alone is removed at the cut. A full-width mark needs no blank.
_SENTENCE_END = re.compile(r"[.!?…।॥۔؟።][\"'”’)\]]*(\s+)|[。！？；។៕။][”’）」』]*(\s*)")
_CLAUSE_END = re.compile(r"[,;:](\s+)|[，、：](\s*)")
_BLANK = re.compile(r"(\s+)")
_AROUND_MIDDLE = 100  # characters on either side in which a text without blanks is cut between grapheme clusters
_LONGEST_ABBREVIATION = 20  # characters, blanks after it included
_LETTER = regex.compile(r"\p{L}")
# What sentencex 1.0.30 lacks, by language code: a sentence hardly ever ends with one of these, or, where one has a #,
# before a number. Those that also end sentences ("etc.") are left out.
_ABBREVIATIONS = {
    "da": "bl.a",
    "de": "Abb# Abs# Bd# Dipl Fa Frl Gebr Hl Hrsg Kap# Tab# exkl inkl",
    "el": "Αγ Στ αρ# καθ οδ σελ#",
    "en": "Mx approx chap# figs# incl vol vols",
    "es": "Cnel Dña aprox art#",
    "fi": "ks nro ns",
    "fr": "Dr M MM Me Mgr Mlle Mlles Mme Mmes Pr Prof St Ste art# no# réf#",
    "hi": "इं कु डॉ पं प्रो श्री श्रीमती सुश्री स्व",
    "hu": "br gr ifj kb ált ún özv",
    "id": "Hj Ir Jl",
    "it": "S art# pag",
    "nl": "afb# ds mevr mw",
    "pl": "abp art# bp dr gen hab inż kpt ks mgr nr por płk red rys# str# tj tzw św",
    "pt": "Av Cap Cel Profa Srta Sta aprox art# núm# pág vol",
    "ro": "Sf art# dl dna pag str",
    "ru": "ген доц инж им рис св т.е",
    "sv": "S:t dvs jfr kap# resp t.ex",
    "tr": "Alb Apt Av Bkz Cad Doç Hz Mah Sn Sok Uzm Yb Yrd vb örn",
    "uk": "ген рис",
}
# Khmer's full stops, which sentencex 1.0.30 does not know.
_KHMER = re.compile(r"[^។៕]*[។៕]+[”’»)\]]*\s*|[^។៕]+")
_UNSPACED = {"zh", "cmn", "yue", "wuu", "lzh", "ja"}  # written without a blank between two sentences


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
    # `pending` joins what follows: a part without a letter (a list's number, a stray mark) or with an abbreviation at
    # its end. At the end of the text it joins what is before.
    result, pending, has_letter = list[str](), "", False
    code = plain_code(language) or "en"
    parts = list(_parts(text, code))
    for part, following in zip_longest(parts, parts[1:], fillvalue=""):
        pending += part
        # Only the new part is searched: with all of `pending`, 100 000 characters without a letter took 5 to 14 s.
        has_letter = has_letter or _LETTER.search(part) is not None
        if has_letter and not _is_abbreviated(pending, following, code):
            result.append(pending)
            pending, has_letter = "", False
    if pending:
        result[-1:] = ["".join(result[-1:]) + pending]
    return result


def _parts(text: str, code: str) -> Iterator[str]:
    """Yield the sentences that sentencex finds, split at the marks of Khmer."""
    from sentencex import segment

    for part in segment(code, text):
        yield from _KHMER.findall(part) if "\u17d4" in part or "\u17d5" in part else [part]


def _is_abbreviated(part: str, following: str, code: str) -> bool:
    """Return whether a part ends in an abbreviation of the language, and not in the end of a sentence."""
    pattern = _abbreviated(code)
    return pattern is not None and pattern.search(part[-_LONGEST_ABBREVIATION:] + following[:1]) is not None


@cache
def _abbreviated(code: str) -> re.Pattern[str] | None:
    """Return a pattern of an abbreviation and the character after it; None if none is listed for the language."""
    listed = _ABBREVIATIONS.get(code, "").replace(".", r"\.\s?").split()
    starts = [f"{each[:-1]}\\.\\s*\\d" if each.endswith("#") else f"{each}\\.\\s*\\S" for each in listed]
    return re.compile(rf"(?:^|[\s(\[\"'’„“«-])(?:{'|'.join(starts)})$", re.IGNORECASE) if starts else None


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
    if plain_code(target) in _UNSPACED:  # a line feed or several blanks are layout, and stay
        return "" if blank == " " else blank
    # A full-width mark has no blank after it, and the target language may need one.
    return blank or (" " if at_mark else "")
