"""Writing systems of languages, by the tables of Unicode and its CLDR."""

from functools import cache
from typing import Any

_SEVERAL = {"Kore": ("Hang", "Hani"), "Jpan": ("Hira", "Kana", "Hani"), "Hans": ("Hani",), "Hant": ("Hani",)}
_BOTH_WAYS = {"sr": ("Cyrl", "Latn"), "uz": ("Cyrl", "Latn"), "pa": ("Guru", "Arab")}


@cache
def is_known(language: str) -> bool:
    """Return whether this is the code of a language."""
    import langcodes

    return langcodes.tag_is_valid(language) and plain_code(language) != "und"


@cache
def plain_code(language: str) -> str:
    """Return en for eng, de for de-AT; the code itself, in lower case, if it is unknown."""
    import langcodes

    if not langcodes.tag_is_valid(language):
        return language.lower()
    return str(langcodes.Language.get(language).language)


def letters_of(language: str) -> Any:
    """Return a pattern that matches a letter of the language's scripts; None for an unknown code."""
    import langcodes
    import regex

    if not is_known(language):
        return None
    script = str(langcodes.Language.get(language).maximize().script)
    scripts = _BOTH_WAYS.get(plain_code(language)) or _SEVERAL.get(script) or (script,)
    try:
        return regex.compile("[" + "".join(f"\\p{{Script_Extensions={name}}}" for name in scripts) + "]")
    except regex.error:  # a script that Unicode has no letters of
        return None
