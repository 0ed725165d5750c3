"""What translating a text returns; needs no torch."""

import math
from dataclasses import dataclass, field


def blank_translations_note(blank: int, with_text: int) -> str:
    """Return a note if most translations are blank; "" otherwise. with_text: how many sources are not."""
    if 2 * blank <= with_text:
        return ""
    return (
        f"{blank} of {with_text} translations are blank (blank sources not counted): the model ends these sentences at "
        "once, as one does that was trained too little; train it longer, or see whether this is text of its kind"
    )


@dataclass(frozen=True)
class Candidate:
    """One way to translate a text.

    segments: the parts that the model translated, none for a blank text: source ids and target ids, without `</s>`.
    score: what translations of this text are ranked by, the sum over its segments; NaN if it was not asked for.
    complete: whether every part ended with `</s>`. log_probability: in nats, the sum over its segments; NaN if it was
    not asked for. missing: translations of the glossary's terms that it lacks. banned: banned phrases that it has.
    """

    text: str
    segments: list[tuple[list[int], list[int]]] = field(repr=False)
    score: float
    complete: bool
    log_probability: float = field(default=math.nan, repr=False)
    missing: list[str] = field(default_factory=list, repr=False)
    banned: list[str] = field(default_factory=list, repr=False)


@dataclass(frozen=True, repr=False)
class Translation:
    """The translation of one text.

    candidates: the best one first; others where the search returns several (search.n_best). too_long: whether a part
    was split because it was longer than max_length. sentences: how many the source has. split: how it was split, from
    `resolved_split`.
    """

    candidates: list[Candidate]
    too_long: bool = False
    sentences: int = 1
    split: str = "length"

    def __repr__(self) -> str:
        score = "" if math.isnan(self.score) else f", score={self.score:.4g}"
        return f"Translation(text={self.text!r}{score}, complete={self.complete}, sentences={self.sentences})"

    @property
    def text(self) -> str:
        """The best translation of the whole text."""
        return self.candidates[0].text

    @property
    def score(self) -> float:
        """What it was ranked by; NaN if that was not asked for."""
        return self.candidates[0].score

    @property
    def alternatives(self) -> list[Candidate]:
        """Other translations, likely ones first."""
        return self.candidates[1:]

    @property
    def segments(self) -> list[tuple[list[int], list[int]]]:
        """The parts that the model translated; see Candidate."""
        return self.candidates[0].segments

    @property
    def complete(self) -> bool:
        """Whether every part ended with `</s>`."""
        return self.candidates[0].complete

    @property
    def parts(self) -> int:
        """How many segments the text was translated in."""
        return len(self.segments)
