"""Writing systems of languages, from Unicode and its Common Locale Data Repository (CLDR)."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from tolka.errors import ConfigError
from tolka.text.direction import UNDETERMINED

# ISO 15924 code -> Unicode scripts, where they differ.
_UNICODE_SCRIPTS = {"Kore": ("Hang", "Hani"), "Jpan": ("Hira", "Kana", "Hani"), "Hans": ("Hani",), "Hant": ("Hani",)}
# Language -> scripts, where it is written in two; CLDR names only the likelier.
_SCRIPTS_OF_LANGUAGE = {"sr": ("Cyrl", "Latn"), "uz": ("Cyrl", "Latn"), "pa": ("Guru", "Arab")}
# Codes of other programs -> BCP 47: of M2M-100's and FLORES-101's lists of languages.
_OF_OTHER_PROGRAMS = {"ns": "nso", "zho_simpl": "zh-Hans", "zho_trad": "zh-Hant"}
_OF_NO_SCRIPT = r"\p{Script=Common}", r"\p{Script=Inherited}"  # digits and signs; marks above any letter
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=SA}\p{Bopomofo}ー"
"""Letters that are written without blanks between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese), for a set."""
_RIGHT_TO_LEFT = {"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}
# Languages without a blank between sentences either.
_WITHOUT_BLANKS = {"zh", "cmn", "yue", "wuu", "lzh", "ja"}
_TAG = re.compile(r"(?:[a-z]{2,3}|[ix](?=[-_]))(?:[-_][a-z0-9]{1,8})*", re.IGNORECASE)  # BCP 47's form


def check_code(key: str, code: str) -> None:
    """Raise ConfigError for what cannot be a language code, such as a language's name, and say which code is meant."""
    meant = code_named(code)
    if not _TAG.fullmatch(code) or meant:
        hint = f" Did you mean '{meant}'?" if meant else ""
        raise ConfigError(f"{key} ('{code}') is not a language code, as en, zh-Hant and x-mine are.{hint}")


@cache
def code_named(name: str) -> str:
    """Return the code of a language by its English name, or by a country where most speak it; "" for a code itself."""
    import langcodes

    if is_known(name):
        return ""
    if re.fullmatch(r"[a-wyz]{2}", name, re.IGNORECASE):  # XA to XZ are nobody's
        country = langcodes.Language.make(territory=name.upper())
        return str(country.maximize().language or "") if country.is_valid() else ""
    # Whatever has the form of a tag may be one: x-mine, or a language younger than the registry.
    if _TAG.fullmatch(name):
        return ""
    from langcodes import registry_parser

    parse: Any = registry_parser.parse_registry
    names = {
        re.sub(r"^Modern | \(.*", "", each).casefold(): str(entry["Subtag"])
        for entry in reversed(list(parse()))  # languages with two letters come first, and count
        if entry["Type"] == "language" and "Deprecated" not in entry
        for each in entry["Description"]
    }
    wanted = re.sub("[-_]", " ", name).casefold()
    begin = sorted((each for each in names if each.startswith(wanted)), key=len)
    near = begin or get_close_matches(wanted, names, n=1, cutoff=0.85)
    return names[near[0]] if near else ""


@cache
def language_of(code: str) -> Any:
    """Return the langcodes.Language of a code; None if it is in no registry."""
    import langcodes

    tag = _OF_OTHER_PROGRAMS.get(code.lower()) or re.sub(r"[-_]XX$", "", code)  # mBART's en_XX
    return langcodes.Language.get(tag) if langcodes.tag_is_valid(tag) else None


@cache
def is_known(language: str) -> bool:
    """Return whether this is the code of a language; und, the code for an undetermined one, is not."""
    return language_of(language) is not None and plain_code(language) != UNDETERMINED


@cache
def plain_code(language: str) -> str:
    """Return the shortest code: en for eng, de for de-AT, zh for cmn; an unknown code in lower case.

    A language that its macrolanguage (ISO 639-3) usually stands for has the code of that one: sq for als, ar for arb.
    """
    known = language_of(language)
    code = str((known and known.prefer_macrolanguage().language) or language.lower())
    return "no" if code == "nb" else code  # CLDR's alias, which langcodes leaves out


def sentence_blank(language: str) -> str:
    """Return the text between two sentences of a language: a blank, or nothing."""
    return "" if plain_code(language) in _WITHOUT_BLANKS else " "


@cache
def language_tag(language: str) -> str:
    """Return the code as documents have it (BCP 47): de for deu_Latn, zh-Hant for zho_Hant; an unknown one as it is."""
    known = language_of(language)
    return str(known.prefer_macrolanguage().simplify_script().to_tag()) if known else language


def is_right_to_left(language: str) -> bool:
    """Return whether a language is written from right to left."""
    return variety_of(language).script in _RIGHT_TO_LEFT


@cache
def is_variety(code: str, language: str) -> bool:
    """Return whether a text with one language code passes for another: en-GB for en, de-DE for de-AT, eng for en.

    The region may differ, and the script only where the language names none: zh-TW passes for zh, but not for zh-CN.
    """
    from langcodes.data_dicts import MACROLANGUAGES

    if code == language or code.startswith(f"{language}-"):
        return True
    if not (is_known(code) and is_known(language)) or plain_code(code) != plain_code(language):
        return False
    first, second = ({re.split("[-_]", each)[0].lower()} & MACROLANGUAGES.keys() for each in (code, language))
    return script_of(code) == script_of(language) and (first == second or not (first and second))  # prs is not pes


class Variety(NamedTuple):
    """A language with the script that it is written in and the region that it is spoken in, by ISO 15924 and 3166."""

    language: str
    script: str
    region: str


@cache
def variety_of(language: str) -> Variety:
    """Return the variety of a code, completed by CLDR's likeliest: (zh, Hant, TW) for zho_Hant; "" if unknown."""
    known = language_of(language) if is_known(language) else None
    if known is None:
        return Variety(plain_code(language), "", "")
    full = known.prefer_macrolanguage().maximize()
    return Variety(plain_code(language), full.script or "", full.territory or "")


def is_in_other_script(text: str, language: str, other: str = "") -> bool:
    """Return whether a text has more letters of the other language's scripts than of those of its own language.

    other: "" for letters of all other scripts, and for zh-Hans and its like for Traditional characters, or conversely.
    False where a code is unknown, and where both have the same letters.
    """
    if not other and (named := named_han_script(language)) and han_script(text) not in ("", named):
        return True
    own, others = letters_of(language), letters_of(other or language)
    if own is None or others is None:
        return False
    letters = "".join([character for character in text if character.isalpha()])
    count = len(own.findall(letters))
    return (len(others.findall(letters)) if other else len(letters) - count) > count


def script_of(language: str) -> str:
    """Return the script that a language is mostly written in: Cyrl for ru and tyv_Cyrl; "" if unknown."""
    return variety_of(language).script


@cache
def letters_of(language: str) -> Any:
    """Return a pattern that matches a letter of the language's scripts; None for an unknown code."""
    import regex

    if not is_known(language):
        return None
    script = script_of(language)
    scripts = _SCRIPTS_OF_LANGUAGE.get(plain_code(language)) or _UNICODE_SCRIPTS.get(script) or (script,)
    try:
        return regex.compile("[" + "".join(f"\\p{{Script_Extensions={name}}}" for name in scripts) + "]")
    except regex.error:  # Unicode has no letters of this script
        return None


def han_script(text: str) -> str:
    """Return Hans or Hant, for the one that a text has more characters of which the other lacks; "" if neither."""
    simplified, traditional = (sum(each in characters for each in text) for characters in _han_characters())
    return "" if simplified == traditional else "Hans" if simplified > traditional else "Hant"


def named_han_script(language: str) -> str:
    """Return Hans or Hant for a code that says which, as zh-TW and zho_Hans do; "" for any other."""
    known, script = language_of(language), script_of(language)
    return script if script in ("Hans", "Hant") and (known.script or known.territory) else ""


@cache
def _han_characters() -> tuple[frozenset[str], frozenset[str]]:
    """Return the Simplified characters of GB 2312 that Big5 lacks, and common Traditional ones for which it is so."""
    han = [chr(code) for code in range(0x4E00, 0xA000)]
    gb, big5 = ({each: each.encode(name, "ignore") for each in han} for name in ("gb2312", "big5"))
    # The other half of Big5 has rare characters, which names and old words have in both scripts.
    common = {each for each, code in big5.items() if b"\xa4" <= code < b"\xc9"}
    return frozenset(each for each in han if gb[each] and not big5[each]), frozenset(common - {*filter(gb.get, han)})


def script_test(languages: Iterable[str]) -> Callable[[str], bool]:
    """Return a test whether a text has only letters of the languages' scripts, and characters that belong to none."""
    import regex

    letters = [pattern.pattern for language in languages if (pattern := letters_of(language))]
    pattern = regex.compile(f"(?:{'|'.join([*letters, *_OF_NO_SCRIPT])})*")
    return lambda text: bool(pattern.fullmatch(text))
