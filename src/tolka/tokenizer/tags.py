"""Language tags: subwords that tell a model of several languages which ones a sentence is in."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tolka.errors import ConfigError
from tolka.options.registry import did_you_mean, some_of
from tolka.text.direction import Direction, is_named
from tolka.text.scripts import plain_code


class Tags(NamedTuple):
    """Ids of the tags of a direction: before the source's subwords, and first in the target."""

    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()


NO_TAGS = Tags()
"""Those of a model that has none."""


def tags_of(direction: Direction, source_ids: Mapping[str, int], target_ids: Mapping[str, int]) -> Tags:
    """Return the source language's tag before the source, and the target language's first in the target.

    source_ids, target_ids: language -> id of its tag on each side. ConfigError, with those that are known, for a
    language that has no tag.
    """
    for side, code, known in (("source", direction.source, source_ids), ("target", direction.target, target_ids)):
        if code not in known:
            raise ConfigError(_complaint(side, code, known))
    return Tags((source_ids[direction.source],), (target_ids[direction.target],))


def _complaint(side: str, code: str, known: Collection[str]) -> str:
    """Return what is wrong with the code of a side, and what to give instead."""
    if not is_named(code):
        return (
            f"the model is of {len(known)} languages, and nothing says the {side}'s: name it, as in "
            f"source={min(known)} target={max(known)}; known: {some_of(sorted(known))}"
        )
    # A language may be typed as another program calls it: de for deu_Latn.
    alike = sorted(each for each in known if plain_code(each) == plain_code(code))
    hint = f" Did you mean {' or '.join(map(repr, alike))}?" if alike else did_you_mean(code, known)
    return f"the model has no tag for the {side} language '{code}'.{hint}"
