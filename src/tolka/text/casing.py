"""Capitals and small letters as languages write them, where Python's `str` does not know the language.

Sources: Unicode's SpecialCasing.txt (Turkish, Azeri, Lithuanian), CLDR's el-Upper and hy-Upper, and for Dutch and Irish
CSS Text 3, section 2.1.
"""

import unicodedata

import regex

from tolka.text.scripts import plain_code

_DOTTED = {"tr", "az", "crh", "gag"}  # i with İ, and ı with I: Turkish, Azeri, Crimean Tatar, Gagauz
_SOFT_DOT = regex.compile("(?<=[ijįIJĮ])\u0307")  # Lithuanian writes it below an accent, and on small letters alone
# Georgian sentences have no capitals: Unicode's Mtavruli are for headlines, and few fonts have them.
_CASED = regex.compile("[^\u10d0-\u10ff]+")
# After a vowel whose accent is gone, ι and υ would be read as its second half: μάιος is ΜΑΪΟΣ.
_GREEK_HIATUS = regex.compile("(?<=[αεηουω][\u0300\u0301\u0342])[ιυ](?!\u0308)", regex.IGNORECASE)
# Of a Greek letter all but the diaeresis and the subscript; a word of its own, ή ("or"), keeps its accent.
_GREEK_ACCENTS = regex.compile(
    r"(?<!\w)([ηΗ]\u0301)(?!\w)|(?<=\p{Greek}\p{M}*)[\u0300\u0301\u0304\u0306\u0313\u0314\u0342]"
)
# What Irish puts before a word stays small, and loses its hyphen: MBAILE is written mBAILE, and n-úll nÚLL.
_IRISH_PREFIX = regex.compile(
    r"\b(bh(?=f)|b(?=p)|d(?=t)|g(?=c)|m(?=b)|n(?=[dg])|t(?=s)|[nt]-(?=[aeiouáéíóú])|h(?=[AEIOUÁÉÍÓÚ]))"
)


def upper(text: str, language: str) -> str:
    """Return a text in capitals. language: its code; an unknown one has Unicode's own rules."""
    code = plain_code(language)
    if code in _DOTTED:
        text = text.replace("i\u0307", "i").replace("i", "İ")
    elif code == "lt":
        text = _SOFT_DOT.sub("", text)
    elif code == "hy":
        text = text.replace("և", "ԵՎ")
    elif code == "el":
        text = _GREEK_HIATUS.sub("\\g<0>\u0308", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", _GREEK_ACCENTS.sub(r"\1", text))
    elif code == "ga":
        parts = map(str, _IRISH_PREFIX.split(text))
        return "".join(part.rstrip("-") if number % 2 else part.upper() for number, part in enumerate(parts))
    return str(_CASED.sub(lambda match: match[0].upper(), text))


def capitalized(text: str, language: str) -> str:
    """Return a text that begins with a capital, as a sentence or a word of a title does."""
    code = plain_code(language)
    if code == "nl" and text[:2].lower() == "ij":
        return "IJ" + text[2:]
    if code == "ga" and (prefix := _IRISH_PREFIX.match(text)):
        return f"{prefix[1].rstrip('-')}{capitalized(text[prefix.end() :], '')}"
    if code in _DOTTED and text[:1] == "i":
        return "İ" + text[1:].removeprefix("\u0307")
    return text[:1].title() + text[1:]  # as Georgian has it, for which `upper` has other letters


def folded(text: str, language: str) -> str:
    """Return a text in the form in which those that differ in case alone are equal."""
    if plain_code(language) in _DOTTED:
        text = text.replace("İ", "i").replace("I", "ı")
    # `casefold` makes an i and a dot of İ, which other languages write as the i of Turkish names.
    return text.casefold().replace("i\u0307", "i")
