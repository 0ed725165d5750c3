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
