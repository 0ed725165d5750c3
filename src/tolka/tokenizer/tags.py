"""Language tags: subwords that tell a model of several languages which ones a sentence is in."""

from collections.abc import Mapping
from typing import NamedTuple

from tolka.errors import ConfigError
from tolka.options.registry import did_you_mean
from tolka.text.direction import Direction


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
            asked = f"the {side} language '{code}'" if code else f"a {side} language"
            hint = did_you_mean(code, known) if code else f" Known: {', '.join(known)}."
            raise ConfigError(f"the model has a tag for each of its languages, and none for {asked}.{hint}")
    return Tags((source_ids[direction.source],), (target_ids[direction.target],))
