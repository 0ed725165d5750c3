"""The result of a validation during training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ALWAYS_MEASURED = ("bleu", "chrf", "nll", "ppl")
"""What each validation measures, whatever trainer.metric is."""


@dataclass(frozen=True)
class Sample:
    """A sentence of the validation set with the model's translation and the reference.

    direction: as in "en-ko", where there are several.
    """

    source: str
    translation: str
    reference: str
    direction: str = ""

    def __str__(self) -> str:
        title = f"  {self.direction}\n" if self.direction else ""
        return f"{title}  source      {self.source}\n  translation {self.translation}\n  reference   {self.reference}\n"


@dataclass(frozen=True)
class Validation:
    """The result of a validation. values: by name: nll, ppl, bleu, chrf, trainer.metric. text: a line for people.

    signatures: of those values that have one. copied, repeated: shares of the translations that equal their source, or
    repeat themselves, where the reference does not. translations: of all sentences; samples: some of them, evenly
    spaced. details: further lines, on each of several directions. directions: the values of each of several, by names
    such as "en-ko".
    """

    values: dict[str, float]
    text: str
    signatures: dict[str, str] = field(default_factory=dict)
    copied: float = 0.0
    repeated: float = 0.0
    translations: Sequence[str] = ()
    samples: Sequence[Sample] = ()
    details: Sequence[str] = ()
    directions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
