"""What a search is asked for and what it returns; needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

from tolka.errors import DataError
from tolka.tokenizer.special_tokens import EOS

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
Wishes = Sequence[Wish]
"""A wish for each sentence of a batch, or none at all."""


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


def check_subwords(ids: Sequence[int], what: str) -> None:
    """Raise DataError for ids that no translation has: those of `<pad>`, `<s>` and `</s>`."""
    # `<unk>` comes after these three, and may stand in a translation.
    if any(token <= EOS for token in ids):
        raise DataError(f"{what} has a special symbol in it (an id of at most {EOS}); it must consist of subwords")


def check_prefix(prefix: Sequence[int], limit: int) -> None:
    """Raise DataError for a prefix that no translation of at most `limit` tokens, `</s>` included, begins with."""
    check_subwords(prefix, "a prefix")
    if prefix and len(prefix) >= limit:
        raise DataError(
            f"a prefix of {len(prefix)} subwords does not fit into a translation of at most {limit - 1}: "
            "shorten it, or raise search.max_length_extra"
        )


Rendered = tuple[str, Hypothesis]
"""A hypothesis with its text."""
