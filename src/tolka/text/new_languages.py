"""What a language code means to a model of several languages, and which codes may be added to them."""

import re
from collections.abc import Collection, Sequence

from tolka.errors import ConfigError
from tolka.options.suggestions import did_you_mean, some_of
from tolka.text.scripts import is_known, is_variety, language_of, plain_code, script_of, variety_of

_SERBO_CROATIAN = "sh", "hbs"  # for langcodes Serbian in Latin letters; in ISO 639-3 a macrolanguage


def check_new_languages(new: Sequence[str], known: Sequence[str], like: str | None = None) -> None:
    """Raise ConfigError for the code of a new language that is none, or that the model has under another name.

    known: the model's languages; none of a model of one direction, which takes any. like: corpus.like; None where
    nobody can type it.
    """
    if like and like not in (known if new else ()):
        which = f"one of the model's, as {some_of(known)}" if new and known else "left out, as no language is new"
        raise ConfigError(
            f"corpus.like ({like}) is the language that the tag of a new one begins as: it must be {which}"
        )
    for code in new if known else ():
        alike = equivalent_codes(code, known)
        if ("_" in code) not in {"_" in each for each in known}:
            hint = code_hint(code, known) if alike else ""
            raise ConfigError(
                f"the model has no tag for the language '{code}'.{hint} Its codes are like {some_of(known)}: write a "
                "new one so, too"
            )
        if like or (not alike and is_known(code)):
            continue
        problem, other = "", "If yours is another language than that"
        if not alike:
            problem, other = ", and no registry of languages has it", "To add it all the same"
        add = f" {other}, name the one that its tag begins as: corpus.like={(alike or ['CODE'])[0]}"
        raise ConfigError(
            f"the model has no tag for the language '{code}'{problem}.{code_hint(code, known)}"
            f"{'' if like is None else add}"
        )


def equivalent_codes(code: str, known: Collection[str]) -> list[str]:
    """Return the codes of a model that have the language of another code: als_Latn for sqi_Latn, pes_Arab for fa.

    For a macrolanguage of which it has other members than the usual one alone, these: bos_Latn and hrv_Latn for sh.
    """
    from langcodes.data_dicts import MACROLANGUAGES

    macro = "sh" if re.split("[-_]", code)[0].lower() in _SERBO_CROATIAN else plain_code(code)
    same = [each for each in sorted(known) if is_variety(code, each)]
    members = [
        each
        for each in sorted(known)
        if MACROLANGUAGES.get(plain_code(each)) == macro and script_of(each) == script_of(code)
    ]
    found = same or members
    found = [each for each in found if variety_of(each).region == variety_of(code).region] or found
    return [each for each in found if language_of(each).language == language_of(code).language] or found


def code_hint(code: str, known: Collection[str]) -> str:
    """Return a sentence on what to type in place of a code that a model lacks; it begins with a space."""
    alike = equivalent_codes(code, known) or [each for each in sorted(known) if plain_code(each) == plain_code(code)]
    if alike:
        return f" Did you mean {' or '.join(map(repr, alike))}?"
    # Of a code that is one, the nearest by its letters is another language.
    return f" Known: {some_of(sorted(known))}." if is_known(code) else did_you_mean(code, known)
