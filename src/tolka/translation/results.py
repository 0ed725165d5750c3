"""Results of translating a text. Needs no torch."""

import math
from dataclasses import dataclass, field


def blank_translations_note(blank: int, with_text: int) -> str:
    """Return a note if most translations are blank; "" otherwise. with_text: number of sources that are not blank."""
    if 2 * blank <= with_text:
        return ""
    return (
        f"{blank} of {with_text} translations are blank (blank sources not counted): the model ends these sentences at "
        "once, as one does that was trained too little; train it longer, or see whether this is text of its kind"
    )


@dataclass(frozen=True)
class Candidate:
    """One way to translate a text.

    segments: source ids and target ids, without `</s>`, of each part that was translated; none for a blank text.
    score: ranks the candidates, a sum over the segments. complete: whether every segment ended with `</s>`.
    log_probability: in nats, a sum over the segments. Both are NaN for a request with scored=False. missing:
    translations of the glossary's terms that it lacks. banned: banned phrases in it.
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

    candidates: best first, up to search.n_best. too_long: whether a sentence was split at max_length. sentences: of the
    source. split: from `resolved_split`.
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
        """The score of the best translation; see Candidate."""
        return self.candidates[0].score

    @property
    def alternatives(self) -> list[Candidate]:
        """The other candidates, best first."""
        return self.candidates[1:]

    @property
    def segments(self) -> list[tuple[list[int], list[int]]]:
        """The segments of the best translation; see Candidate."""
        return self.candidates[0].segments

    @property
    def complete(self) -> bool:
        """Whether every segment of the best translation ended with `</s>`."""
        return self.candidates[0].complete
