"""Which codes may be added to the languages of a model."""

from collections.abc import Sequence

from tolka.errors import ConfigError
from tolka.options.registry import did_you_mean, some_of
from tolka.text.scripts import is_known, is_variety


def check_new_languages(new: Sequence[str], known: Sequence[str], like: str) -> None:
    """Raise ConfigError for the code of a new language that is none, or that the model has under another name.

    known: the model's languages; none of a model of one direction, which takes any. like: corpus.like.
    """
    if like and like not in (known if new else ()):
        which = f"one of the model's, as {some_of(known)}" if new and known else "left out, as no language is new"
        raise ConfigError(
            f"corpus.like ({like}) is the language that the tag of a new one begins as: it must be {which}"
        )
    for code in new if known else ():
        alike = [each for each in known if is_variety(code, each)]
        if alike or ("_" in code) not in {"_" in each for each in known}:
            hint = f" Did you mean {' or '.join(map(repr, alike))}?" if alike else ""
            raise ConfigError(
                f"the model has no tag for the language '{code}'.{hint} Its codes are like {some_of(known)}: write a "
                "new one so, too"
            )
        if not is_known(code) and not like:
            raise ConfigError(
                f"the model has no tag for the language '{code}', and no registry of languages has it."
                f"{did_you_mean(code, known)} To add it all the same, name the known language that it begins as: "
                "corpus.like=CODE"
            )
