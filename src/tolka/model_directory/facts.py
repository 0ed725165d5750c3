"""What translating texts needs to know of a model, besides its weights; needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tolka.model_directory.verify import TrainingSources
from tolka.text.characters import KEEP, CharacterForm
from tolka.text.direction import Direction
from tolka.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class ModelFacts:
    """A model's tokenizer, and what it was trained on.

    sources: statistics of the training text. characters: their form in it. directions: those that the model knows, none
    where nobody said them. quality: the calibration of quality estimates, or None.
    """

    tokenizer: Tokenizer
    sources: TrainingSources
    characters: CharacterForm = KEEP
    directions: tuple[Direction, ...] = ()
    quality: Mapping[str, Any] | None = None
