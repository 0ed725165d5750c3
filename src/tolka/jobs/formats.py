"""Output formats: text, n-best lists, JSON lines, and what to check as a table or a page; attention maps."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tolka.errors import ConfigError
from tolka.report.attention import write_maps
from tolka.report.render import render
from tolka.system.number_format import count_text, json_text
from tolka.translation.attention_maps import AttentionMap, word_alignment
from tolka.translation.quality import Features, estimate
from tolka.translation.results import Candidate, Translation
from tolka.translation.scoring import scores_of_texts

if TYPE_CHECKING:
    from tolka.translation.translator import Translator

_DIGITS = 6  # significant digits of scores: fp32 has about as many
_END = "</s>"
_ROWS = "<!-- rows -->"  # where the template has its rows


class LineResult(NamedTuple):
    """A line and its translation. token_scores: of a translation that was given, as `score_given` returns them."""

    source: str
    translation: Translation
    token_scores: list[float] | None = None


class AttentionMaps:
    """Attention maps of translations, and the pages and JSON files of them in a folder."""

    def __init__(self, translator: "Translator[Any]", folder: Path | None, done: int) -> None:
        """folder: None = no files. done: lines whose files an interrupted job has written."""
        self._translator, self._folder, self._count = translator, folder, done

    def alignments(self, results: Sequence[LineResult], are_wanted: bool) -> list[list[tuple[int, int]]]:
        """Return the word alignment of each line, empty unless they are wanted; write its page and JSON file."""
        all_maps = self._translator.attention([result.translation for result in results])
        for result, maps in zip(results, all_maps, strict=True):
            self._count += 1
            if self._folder is not None:
                values, stem = [each.as_dict() for each in maps], self._folder / f"{self._count:06d}"
                write_maps(stem, result.source, result.translation.text, values, self._translator.direction)
        return [word_alignment(maps) if are_wanted else [] for maps in all_maps]

    def last_notes(self) -> Iterator[str]:
        """Yield where the maps are."""
        if self._folder is not None:
            yield f"attention maps: {self._folder} ({count_text(self._count, 'line')})"


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
    _attention: AttentionMaps | None = None

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

    def __init__(self, attention: AttentionMaps | None, alignments: bool, given: bool) -> None:
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


class JsonLines(Format):
    """An object a line: source, hypotheses with scores of their tokens and word alignments, quality, flags."""

    def __init__(self, translator: "Translator[Any]", attention: AttentionMaps | None) -> None:
        """attention: writes the maps; None = none."""
        self._translator, self._attention = translator, attention
        self._is_aligned = True  # until the model is found to have no cross-attention
        self._totals = np.zeros(3)  # what a forecast takes of the lines
        self.flagged: list[list[str]] = []

    def lines(self, results: Sequence[LineResult]) -> Iterator[str]:
        if self._attention:
            self._attention.alignments(results, are_wanted=False)
        for values in self.values(results):
            yield json_text(values, ensure_ascii=False)

    def values(self, results: Sequence[LineResult], with_maps: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the object of each line as plain values. with_maps: its `attention` is that of the best hypothesis."""
        self.flagged = []
        candidates = [each for result in results for each in result.translation.candidates]
        all_scores, all_maps = iter(self._token_scores(results, candidates)), iter(self._maps(candidates))
        for result in results:
            of_result = result.translation.candidates
            scores = list(islice(all_scores, len(of_result)))
            maps = list(islice(all_maps, len(of_result)))
            hypotheses = [self._hypothesis(*each) for each in zip(of_result, scores, maps, strict=True)]
            texts = [each.text for each in of_result]
            features = Features.of(scores[0], texts) if scores[0] else None
            quality = estimate(features, self._translator.calibration) if features else None
            if features:
                self._totals += features.values(with_agreement=False)
            [flags] = self._translator.flags([result.source], [result.translation], [quality])
            self.flagged.append(flags)
            value = quality and {quality.kind: rounded_score(quality.value)}
            values = {"source": result.source, "hypotheses": hypotheses, "quality": value, "flags": flags}
            if with_maps and maps[0] is not None:
                values["attention"] = [each.as_dict() for each in maps[0]]
            yield values

    def last_notes(self) -> Iterator[str]:
        yield from super().last_notes()
        if self._totals[0] and (calibration := self._translator.calibration):
            yield (
                f"expected: a mean chrF2 of {calibration.forecast(self._totals)} over "
                f"{count_text(round(self._totals[0]), 'line')}, if the text is of the kind that the model was "
                "calibrated on"
            )

    def _hypothesis(
        self, candidate: Candidate, scores: Sequence[float], maps: list[AttentionMap] | None
    ) -> dict[str, Any]:
        pieces = self._translator.tokenizer.target_pieces
        return {
            "text": candidate.text,
            "score": rounded_score(candidate.score),
            "tokens": [token for _, target in candidate.segments for token in (*pieces(target), _END)],
            "token_scores": [rounded_score(score) for score in scores],
            "alignment": None if maps is None else word_alignment(maps),
        }

    def _token_scores(self, results: Sequence[LineResult], candidates: Sequence[Candidate]) -> list[list[float]]:
        """Return the log-probabilities of each candidate's tokens."""
        # Translations that were given have been scored already, and have one candidate each.
        known = [result.token_scores for result in results if result.token_scores is not None]
        if len(known) == len(results):
            return known
        return scores_of_texts(self._translator, [each.segments for each in candidates])

    def _maps(self, candidates: Sequence[Candidate]) -> Sequence[list[AttentionMap] | None]:
        """Return the attention maps of each candidate; None where the model has no cross-attention."""
        if self._is_aligned:
            try:
                return self._translator.attention(candidates, with_gradients=False)
            except ConfigError:  # of an ensemble, too
                self._is_aligned = False
        return [None] * len(candidates)


def score_text(value: float) -> str:
    """Return a score as text, with as many digits as fp32 has."""
    return f"{value + 0.0:.{_DIGITS}g}"  # 0, not -0


def rounded_score(value: float) -> float:
    """Return a score rounded to as many digits as fp32 has."""
    return float(score_text(value))
