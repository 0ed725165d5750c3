"""Facts of a model that translating needs besides its weights. Needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tolka.model_directory.verify import TrainingSources
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import UNDETERMINED, Direction
from tolka.tokenizer.tokenizer import Tokenizer


def readable_verdict(scores: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict in a model's scores.json; None if it has none with sentences."""
    verdict = scores.get("verdict")
    is_read = isinstance(verdict, dict) and isinstance(verdict.get("sentences"), list) and verdict["sentences"]
    return verdict if is_read else None


@dataclass(frozen=True)
class ModelFacts:
    """A model's tokenizer, and facts of its training text.

    sources: statistics of it. characters: the form of characters in it. directions: those that the model knows; may be
    empty for another program's model. quality: the calibration of quality estimates, or None. verdict: on its training,
    or None.
    """

    tokenizer: Tokenizer
    sources: TrainingSources
    characters: CharacterForm = KEEP
    directions: tuple[Direction, ...] = ()
    quality: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None

    @property
    def usual_direction(self) -> Direction:
        """The direction of a request that names none; of several, languages that they do not share are undetermined."""
        sides = [dict.fromkeys(codes) for codes in zip(*self.directions, strict=True)]
        return Direction(*("".join(codes) if len(codes) == 1 else UNDETERMINED for codes in sides))

    def direction(self, source: str = "", target: str = "") -> Direction:
        """Return the direction of the languages that are named; one that is not is that of the only one that fits."""
        fitting = [each for each in self.directions if source in ("", each.source) and target in ("", each.target)]
        usual = fitting[0] if len(fitting) == 1 else self.usual_direction
        return Direction(source or usual.source, target or usual.target)
