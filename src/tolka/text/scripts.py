"""Which scripts languages are written in, by the tables of Unicode and its CLDR."""

from functools import cache
from typing import Any

_SEVERAL = {"Kore": ("Hang", "Hani"), "Jpan": ("Hira", "Kana", "Hani"), "Hans": ("Hani",), "Hant": ("Hani",)}
_BOTH_WAYS = {"sr": ("Cyrl", "Latn"), "uz": ("Cyrl", "Latn"), "pa": ("Guru", "Arab")}


@cache
def is_known(language: str) -> bool:
    """Whether this is the code of a language."""
    import langcodes

    return langcodes.tag_is_valid(language) and plain_code(language) != "und"


@cache
def plain_code(language: str) -> str:
    """en of eng, de of de-AT; the code itself, in small letters, where it is not a known one."""
    import langcodes

    if not langcodes.tag_is_valid(language):
        return language.lower()
    return str(langcodes.Language.get(language).language)


def letters_of(language: str) -> Any:
    """A pattern that matches one letter of a script that the language is written in; None for an unknown code."""
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
