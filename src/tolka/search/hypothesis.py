"""What a search is asked for and what it returns; needs no torch."""

from dataclasses import dataclass

from tolka.errors import DataError
from tolka.text.tokenizer.special_tokens import EOS

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Wish:
    """What is wanted of the translation of one sentence.

    prefix: target ids that it begins with. terms: for each term that has to stand in it, the alternatives as ids; one
    that begins with the id of `<s>` counts only at the beginning.
    banned: sequences of ids of which none may stand in it, except in the prefix.
    """

    prefix: Ids = ()
    terms: tuple[tuple[Ids, ...], ...] = ()
    banned: tuple[Ids, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything is wanted."""
        return bool(self.prefix or self.terms or self.banned)


NO_WISH = Wish()


def check_subwords(ids: Ids, what: str) -> None:
    """Raise DataError for ids that no translation has: those of `<pad>`, `<s>` and `</s>`."""
    if any(token <= EOS for token in ids):
        raise DataError(f"{what} has a special symbol in it (an id of at most {EOS}); it must consist of subwords")


@dataclass(frozen=True)
class Hypothesis:
    """One translation. tokens: ids without `<s>` and `</s>`. log_probability: of all tokens, `</s>` included, in nats.

    score: what hypotheses are ranked by. finished: whether `</s>` was reached before the length limit. Both values
    are NaN where they were neither requested nor needed.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool


Rendered = tuple[str, Hypothesis]
"""A hypothesis with its text."""
