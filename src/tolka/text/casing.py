"""Capitals and small letters as languages write them, where Python's `str` does not know the language.

Sources: Unicode's SpecialCasing.txt (Turkish, Azeri), CLDR's el-Upper, and for Dutch CSS
Text 3, section 2.1.
"""

import unicodedata

import regex

from tolka.text.scripts import plain_code

_DOTTED = {"tr", "az", "crh", "gag"}  # i with İ, and ı with I: Turkish, Azeri, Crimean Tatar, Gagauz
# Georgian sentences have no capitals: Unicode's Mtavruli are for headlines, and few fonts have them.
_CASED = regex.compile("[^\u10d0-\u10ff]+")
# After a vowel whose accent is gone, ι and υ would be read as its second half: μάιος is ΜΑΪΟΣ.
_GREEK_HIATUS = regex.compile("(?<=[αεηουω][\u0300\u0301\u0342])[ιυ](?!\u0308)", regex.IGNORECASE)
# Of a Greek letter all but the diaeresis and the subscript; a word of its own, ή ("or"), keeps its accent.
_GREEK_ACCENTS = regex.compile(
    r"(?<!\w)([ηΗ]\u0301)(?!\w)|(?<=\p{Greek}\p{M}*)[\u0300\u0301\u0304\u0306\u0313\u0314\u0342]"
)


def upper(text: str, language: str) -> str:
    """Return a text in capitals. language: its code; an unknown one has Unicode's own rules."""
    code = plain_code(language)
    if code in _DOTTED:
        text = text.replace("i\u0307", "i").replace("i", "İ")
    elif code == "el":
        text = _GREEK_HIATUS.sub("\\g<0>\u0308", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", _GREEK_ACCENTS.sub(r"\1", text))
    return str(_CASED.sub(lambda match: match[0].upper(), text))


def capitalized(text: str, language: str) -> str:
    """Return a text that begins with a capital, as a sentence or a word of a title does."""
    code = plain_code(language)
    if code == "nl" and text[:2].lower() == "ij":
        return "IJ" + text[2:]
    if code in _DOTTED and text[:1] == "i":
        return "İ" + text[1:].removeprefix("\u0307")
    return text[:1].title() + text[1:]  # as Georgian has it, for which `upper` has other letters


def folded(text: str, language: str) -> str:
    """Return a text in the form in which those that differ in case alone are equal."""
    if plain_code(language) in _DOTTED:
        text = text.replace("İ", "i").replace("I", "ı")
    # `casefold` makes an i and a dot of İ, which other languages write as the i of Turkish names.
    return text.casefold().replace("i\u0307", "i")
