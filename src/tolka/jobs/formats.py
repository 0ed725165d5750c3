"""Output formats: text, n-best lists, and what to check as a table or a page. `json_lines.py` has JSON."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tolka.report.render import render
from tolka.translation.results import Translation

if TYPE_CHECKING:
    from tolka.translation.translator import Translator

Attention = Any  # `json_lines.AttentionMaps`

_DIGITS = 6  # significant digits of scores: fp32 has about as many
_ROWS = "<!-- rows -->"  # where the template has its rows


class LineResult(NamedTuple):
    """A line and its translation. token_scores: of a translation that was given, as `score_given` returns them."""

    source: str
    translation: Translation
    token_scores: list[float] | None = None


class Format(ABC):
    """The lines of output for each line of input."""

    scored: ClassVar[bool] = True
    """whether scores are needed"""
    head: str = ""
    """what is written before the first line"""
    tail: str = ""
    """what is written after the last line"""
    flagged: Sequence[list[str]] = ()
    """flags of the window that was written last, where the format writes them"""
    _attention: Attention = None

    @abstractmethod
    def lines(self, results: Sequence[LineResult]) -> Iterator[str]:
        """Yield the lines of output, without their ends, for a window of results."""

    def last_notes(self) -> Iterator[str]:
        """Yield notes at the end on other files that were written."""
        if self._attention is not None:
            yield from self._attention.last_notes()


class TextLines(Format):
    """The translation; before it the score of a given one, after it the word alignment if that is an option."""

    scored = False

    def __init__(self, attention: Attention, alignments: bool, given: bool) -> None:
        """alignments: whether word alignments are written. given: whether the translations were given."""
        self._attention, self._alignments, self._given = attention, alignments, given

    def lines(self, results: Sequence[LineResult]) -> Iterator[str]:
        alignments = self._attention.alignments(results, self._alignments) if self._attention else [[]] * len(results)
        for result, pairs in zip(results, alignments, strict=True):
            best = result.translation.candidates[0]
            score = f"{score_text(best.score)}\t" if self._given else ""
            aligned = " ".join(f"{source}-{target}" for source, target in pairs)
            yield score + best.text + (f"\t{aligned}" if self._alignments else "")


class NBestLines(Format):
    """Moses' n-best lists: number of the line, from 0 ||| translation ||| features ||| score.

    Features: `log_probability=`, in nats, and `tokens=`, `</s>` of every segment included.
    """

    def __init__(self, done: int) -> None:
        """done: lines written by an interrupted job."""
        self._number = done

    def lines(self, results: Sequence[LineResult]) -> Iterator[str]:
        for result in results:
            for each in result.translation.candidates:
                tokens = sum(len(target) + 1 for _, target in each.segments)
                features = f"log_probability= {score_text(each.log_probability)} tokens= {tokens}"
                yield f"{self._number} ||| {each.text} ||| {features} ||| {score_text(each.score)}"
            self._number += 1


class CheckList(Format):
    """A row for each line: its number, from 1, the flags of its translation, source and translation.

    As a page, or as values with tabs between them.
    """

    scored = False

    def __init__(self, translator: "Translator[Any]", is_page: bool, done: int) -> None:
        """done: lines that an interrupted job has written."""
        self._translator, self._is_page, self._number = translator, is_page, done
        page = render("lines.html", title="lines to check", rows=_ROWS)
        self.head, _, self.tail = page.partition(_ROWS) if is_page else ("line\tcheck\tsource\ttranslation\n", "", "")

    def lines(self, results: Sequence[LineResult]) -> Iterator[str]:
        translations, sources = [each.translation for each in results], [each.source for each in results]
        self.flagged = self._translator.flags(sources, translations, self._translator.quality(translations))
        for source, translation, flags in zip(sources, translations, self.flagged, strict=True):
            self._number += 1
            cells = str(self._number), ", ".join(flags), source, translation.text
            if self._is_page:
                number, why, *texts = map(escape, cells)
                row = "".join(f'<td dir="auto">{text}</td>' for text in texts)
                yield f'<tr class="{"check" if flags else "fine"}"><td>{number}</td>{row}<td>{why}</td></tr>'
            else:
                yield "\t".join(cell.replace("\t", " ") for cell in cells)


def score_text(value: float) -> str:
    """Return a score as text, with as many digits as fp32 has."""
    return f"{value + 0.0:.{_DIGITS}g}"  # 0, not -0


def rounded_score(value: float) -> float:
    """Return a score rounded to as many digits as fp32 has."""
    return float(score_text(value))
