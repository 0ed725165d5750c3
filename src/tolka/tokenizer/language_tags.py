"""Language tags: subwords that tell a model of several languages which ones a sentence is in."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from tolka.errors import ConfigError
from tolka.options.suggestions import some_of
from tolka.text.direction import Direction, is_named
from tolka.text.new_languages import code_hint


class Tags(NamedTuple):
    """Ids of the tags of a direction: before the source's subwords, and first in the target.

    never: for a search, the target ids that stand for no text, as all tags do: no translation has them.
    """

    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    never: tuple[int, ...] = ()


NO_TAGS = Tags()
"""Those of a model that has none."""
FORMS = {"source": ">>{}<<", "target": "<<{}>>", "both": "__{}__"}
"""Where the tags stand -> how they are written in a SentencePiece model of one's own.

source: the target language's before the source, as in OPUS-MT's models. target: the target language's at the beginning
of the translation. both: the source language's before the source, and the target language's at the beginning of the
translation, as in M2M-100 and NLLB-200.
"""
_WRITTEN = {form: re.compile(written.format(r"(\S+)")) for form, written in FORMS.items()}


def written_tags(subwords: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """Return the form of the tags among the control symbols of a SentencePiece model, and language -> id.

    subwords: name -> id of these symbols.
    """
    for form, pattern in _WRITTEN.items():
        if found := {match[1]: number for name, number in subwords.items() if (match := pattern.fullmatch(name))}:
            return form, found
    return "both", {}


def tags_of(
    direction: Direction, source_ids: Mapping[str, int], target_ids: Mapping[str, int], form: str = "both"
) -> Tags:
    """Return the tags of a direction. source_ids, target_ids: language -> id of its tag on each side. form: of FORMS.

    ConfigError, with those that are known, for a language that has no tag.
    """
    needed = [("target", direction.target, source_ids if form == "source" else target_ids)]
    if form == "both":
        needed.insert(0, ("source", direction.source, source_ids))
    for side, code, known in needed:
        check_known(side, code, known)
    ids = [(known[code],) for _, code, known in needed]
    return Tags(ids[0], ()) if form == "source" else Tags((), ids[0]) if form == "target" else Tags(*ids)


def check_known(side: str, code: str, known: Collection[str]) -> None:
    """Raise ConfigError for the code of a side that is not known, with what to give instead."""
    if code in known:
        return
    if not is_named(code):
        raise ConfigError(
            f"the model is of {len(known)} languages, and nothing says the {side}'s: name it, as in "
            f"source={min(known)} target={max(known)}; known: {some_of(sorted(known))}"
        )
    raise ConfigError(f"the model does not know the {side} language '{code}'.{code_hint(code, known)}")
