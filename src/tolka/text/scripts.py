"""Writing systems of languages, from Unicode and its Common Locale Data Repository (CLDR)."""

from functools import cache
from typing import Any

# ISO 15924 code -> Unicode scripts, where they differ; language -> scripts, where it is written in two.
_UNICODE_SCRIPTS = {"Kore": ("Hang", "Hani"), "Jpan": ("Hira", "Kana", "Hani"), "Hans": ("Hani",), "Hant": ("Hani",)}
_SCRIPTS_OF_LANGUAGE = {"sr": ("Cyrl", "Latn"), "uz": ("Cyrl", "Latn"), "pa": ("Guru", "Arab")}


@cache
def is_known(language: str) -> bool:
    """Return whether this is the code of a language."""
    import langcodes

    return langcodes.tag_is_valid(language) and plain_code(language) != "und"


@cache
def plain_code(language: str) -> str:
    """Return the shortest code of the language: en for eng, de for de-AT; an unknown code in lower case."""
    import langcodes

    if not langcodes.tag_is_valid(language):
        return language.lower()
    return str(langcodes.Language.get(language).language)


@cache
def is_variety(code: str, language: str) -> bool:
    """Return whether a text with one language code passes for another: en-GB for en, de-DE for de-AT, eng for en.

    The region may differ, and the script only where the language names none: zh-TW passes for zh, but not for zh-CN.
    """
    import langcodes

    if code == language or code.startswith(f"{language}-"):
        return True
    if not (is_known(code) and is_known(language)) or plain_code(code) != plain_code(language):
        return False
    first, second = (langcodes.Language.get(each).maximize().script for each in (code, language))
    return bool(first == second)


def is_in_other_script(text: str, language: str, other: str = "") -> bool:
    """Return whether a text has more letters of the other language's scripts than of those of its own language.

    other: "" for letters of all other scripts. False where a code is unknown, and where both have the same letters.
    """
    own, others = letters_of(language), letters_of(other or language)
    if own is None or others is None:
        return False
    letters = "".join([character for character in text if character.isalpha()])
    count = len(own.findall(letters))
    return (len(others.findall(letters)) if other else len(letters) - count) > count


@cache
def letters_of(language: str) -> Any:
    """Return a pattern that matches a letter of the language's scripts; None for an unknown code."""
    import langcodes
    import regex

    if not is_known(language):
        return None
    script = str(langcodes.Language.get(language).maximize().script)
    scripts = _SCRIPTS_OF_LANGUAGE.get(plain_code(language)) or _UNICODE_SCRIPTS.get(script) or (script,)
    try:
        return regex.compile("[" + "".join(f"\\p{{Script_Extensions={name}}}" for name in scripts) + "]")
    except regex.error:  # Unicode has no letters of this script
        return None
