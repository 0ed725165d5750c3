"""Output formats that need no torch: text and n-best lists; `json_lines.py` has the other."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Protocol

from tolka.translation.results import Translation

_DIGITS = 6  # significant ones of scores: about what fp32 has


class Result(NamedTuple):
    """A line and its translation. token_scores: of a translation that was given, as `score_given` returns them."""

    source: str
    translation: Translation
    token_scores: list[float] | None = None


class AttentionOutput(Protocol):
    """What reads the attention maps of translations, and may draw them."""

    def alignments(self, results: Sequence[Result], are_wanted: bool) -> list[list[tuple[int, int]]]:
        """Return the word alignment of each line, empty unless they are wanted; draw its map where that was asked."""
        ...

    def last_notes(self) -> Iterator[str]:
        """Yield where the maps are, and what could not be drawn."""
        ...


class Format(ABC):
    """What is written of each line."""

    scored: ClassVar[bool] = True
    """whether scores are needed"""
    is_text: ClassVar[bool] = False
    """whether its lines are translations, which the documents put in their places"""

    def __init__(self, attention: AttentionOutput | None = None) -> None:
        self._attention = attention

    @abstractmethod
    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        """Yield the lines of output, without their ends, for a window of results."""

    def last_notes(self) -> Iterator[str]:
        """Yield, at the end, what was written besides."""
        if self._attention is not None:
            yield from self._attention.last_notes()


class TextLines(Format):
    """The translation; before it, where it was given, its score; after it, where asked for, the word alignment."""

    scored, is_text = False, True

    def __init__(self, attention: AttentionOutput | None, alignments: bool, given: bool) -> None:
        """given: whether the translations were given."""
        super().__init__(attention)
        self._alignments, self._given = alignments, given

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        found = self._attention.alignments(results, self._alignments) if self._attention else [[]] * len(results)
        for result, pairs in zip(results, found, strict=True):
            best = result.translation.candidates[0]
            score = f"{shown(best.score)}\t" if self._given else ""
            yield score + best.text + (f"\t{_pharaoh(pairs)}" if self._alignments else "")


class NBestLines(Format):
    """Moses' n-best lists: number of the line, from 0 ||| translation ||| features ||| score.

    Features: `log_probability=`, in nats, and `tokens=`, `</s>` of every segment included.
    """

    def __init__(self, done: int) -> None:
        """done: how many lines are written already."""
        super().__init__()
        self._number = done

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        for result in results:
            for each in result.translation.candidates:
                tokens = sum(len(target) + 1 for _, target in each.segments)
                features = f"log_probability= {shown(each.log_probability)} tokens= {tokens}"
                yield f"{self._number} ||| {each.text} ||| {features} ||| {shown(each.score)}"
            self._number += 1


def shown(value: float) -> str:
    """Return a score with as many digits as fp32 has."""
    return f"{value + 0.0:.{_DIGITS}g}"  # 0, not -0


def rounded(value: float) -> float:
    """Return a score rounded to as many digits as fp32 has."""
    return float(shown(value))


def _pharaoh(pairs: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{source}-{target}" for source, target in pairs)
