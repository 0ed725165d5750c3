"""The output formats of mt-translate: text, n-best lists and JSON lines."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tolka.config.schemas import TranslateConfig
from tolka.report.attention import AttentionFolder
from tolka.system.number_format import json_text
from tolka.system.progress import say
from tolka.translation.attention_maps import AttentionConfig, AttentionMap, AttentionReader, word_alignment
from tolka.translation.quality import Estimate, Features, estimate
from tolka.translation.results import Candidate, Translation
from tolka.translation.torch_engine import TorchEngine
from tolka.translation.translator import Translator

_DIGITS = 6  # significant ones of scores: about what fp32 has
_END = "</s>"


class Result(NamedTuple):
    """A line and its translation. token_scores: of a translation that was given, as `score_given` returns them."""

    source: str
    translation: Translation
    token_scores: list[float] | None = None


class AttentionOutput:
    """Attention maps of translations, and the pictures and JSON files of them in a folder."""

    def __init__(self, translator: Translator[TorchEngine], config: AttentionConfig, folder: Path | None, done: int):
        """folder: None = no pictures. done: how many lines have theirs already."""
        self._reader, self._count = AttentionReader(translator, config), done
        self._folder = AttentionFolder(folder) if folder else None

    def maps(self, results: Sequence[Result]) -> list[list[AttentionMap]]:
        """Return the maps of each line; write its picture and its JSON file."""
        found = self._reader([result.translation for result in results])
        for result, maps in zip(results, found, strict=True):
            self._count += 1
            if self._folder is not None:
                values = [each.as_dict() for each in maps]
                self._folder.write(f"{self._count:06d}", result.source, result.translation.text, values)
        return found

    def conclude(self) -> None:
        """Report where the maps are, and what could not be drawn."""
        if self._folder is not None:
            say(f"attention maps: {self._folder.path} ({self._count} lines)")
            if self._folder.complaint:
                say(f"note: {self._folder.complaint}")


class Format(ABC):
    """What is written of each line."""

    scored: ClassVar[bool] = True
    """whether scores are needed"""

    def __init__(self, attention: AttentionOutput | None = None) -> None:
        self._attention = attention

    @abstractmethod
    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        """Yield the lines of output, without their ends, for a window of results."""

    def conclude(self) -> None:
        """Report, at the end, what was written besides."""
        if self._attention is not None:
            self._attention.conclude()


class TextLines(Format):
    """The translation; before it, where it was given, its score; after it, where asked for, the word alignment."""

    scored = False

    def __init__(self, attention: AttentionOutput | None, alignments: bool, score: str) -> None:
        """score: sum or mean, for translations that were given; else empty."""
        super().__init__(attention)
        self._alignments, self._score = alignments, score

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        maps = self._attention.maps(results) if self._attention else [[]] * len(results)
        for result, of_line in zip(results, maps, strict=True):
            best = result.translation.candidates[0]
            score = f"{_shown(_given_score(best, self._score))}\t" if self._score else ""
            yield score + best.text + (f"\t{_pharaoh(of_line)}" if self._alignments else "")


class NBestLines(Format):
    """Moses' n-best lists: number of the line, from 0 ||| translation ||| features ||| score.

    Features: `log_probability=`, in nats, and `tokens=`, `</s>` of every segment included.
    """

    def __init__(self, score: str, done: int) -> None:
        """score: as for TextLines. done: how many lines are written already."""
        super().__init__()
        self._score, self._number = score, done

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        for result in results:
            for each in result.translation.candidates:
                features = f"log_probability= {_shown(each.log_probability)} tokens= {_tokens(each)}"
                score = _given_score(each, self._score) if self._score else each.score
                yield f"{self._number} ||| {each.text} ||| {features} ||| {_shown(score)}"
            self._number += 1


class JsonLines(Format):
    """An object a line: source, hypotheses with scores of their tokens and word alignments, quality, flags."""

    def __init__(
        self,
        translator: Translator[TorchEngine],
        attention: AttentionOutput | None,
        config: AttentionConfig,
        score: str,
    ) -> None:
        """attention: for pictures. config: which layer and heads alignments are read from. score: as for TextLines."""
        super().__init__(attention)
        self._translator, self._score = translator, score
        head = "mean" if config.head == "all" else config.head
        alone = replace(config, kind="cross", head=head) if config.kind == "cross" else AttentionConfig()
        self._reader = AttentionReader(translator, alone)
        self._is_aligned: bool | None = None  # known once there is a translation to try

    def lines(self, results: Sequence[Result]) -> Iterator[str]:
        if self._attention:
            self._attention.maps(results)
        candidates = [each for result in results for each in result.translation.candidates]
        all_scores, alignments = iter(self._token_scores(results, candidates)), iter(self._alignments(candidates))
        for result in results:
            of_result = result.translation.candidates
            scores = list(islice(all_scores, len(of_result)))
            hypotheses = [
                self._hypothesis(each, tokens, next(alignments)) for each, tokens in zip(of_result, scores, strict=True)
            ]
            quality = self._quality(scores[0], of_result)
            [found] = self._translator.flags([result.source], [result.translation], [quality])
            value = quality and {quality.kind: _rounded(quality.value)}
            yield json_text(
                {"source": result.source, "hypotheses": hypotheses, "quality": value, "flags": found},
                ensure_ascii=False,
            )

    def _quality(self, token_scores: Sequence[float], candidates: Sequence[Candidate]) -> Estimate | None:
        """Return the estimate of the first candidate's quality; None for a blank text."""
        if not token_scores:
            return None
        return estimate(Features.of(token_scores, [each.text for each in candidates]), self._translator.calibration)

    def _hypothesis(
        self, candidate: Candidate, scores: Sequence[float], alignment: list[tuple[int, int]] | None
    ) -> dict[str, Any]:
        pieces = self._translator.tokenizer.target_pieces
        return {
            "text": candidate.text,
            "score": _rounded(_given_score(candidate, self._score) if self._score else candidate.score),
            "tokens": [token for _, target in candidate.segments for token in (*pieces(target), _END)],
            "token_scores": [_rounded(score) for score in scores],
            "alignment": alignment,
        }

    def _token_scores(self, results: Sequence[Result], candidates: Sequence[Candidate]) -> list[list[float]]:
        """Return the log-probabilities of each candidate's tokens."""
        given = [result.token_scores for result in results if result.token_scores is not None]
        if len(given) == len(results):
            return given
        found = iter(self._translator.token_scores([segment for each in candidates for segment in each.segments]))
        return [[score for part in islice(found, len(each.segments)) for score in part] for each in candidates]

    def _alignments(self, candidates: Sequence[Candidate]) -> list[list[tuple[int, int]] | None]:
        """Return the word alignment of each candidate; None where the model has no cross-attention."""
        if self._is_aligned is None and (
            segment := next((each.segments[0] for each in candidates if each.segments), None)
        ):
            self._is_aligned = self._reader.finds_any(segment)
        if not self._is_aligned:
            return [None] * len(candidates)
        return [word_alignment(maps) for maps in self._reader(candidates)]


def format_of(
    config: TranslateConfig, translator: Translator[TorchEngine], folder: Path | None, given: bool, done: int
) -> Format:
    """Return the format that output.format names.

    folder: for attention maps, or None. given: whether the translations were given. done: lines written already.
    """
    name, score = config.output.format, config.output.score if given else ""
    looks = folder is not None or (config.attention.alignments and name == "text")
    attention = AttentionOutput(translator, config.attention, folder, done) if looks else None
    if name == "jsonl":
        return JsonLines(translator, attention, config.attention, score)
    if name == "nbest":
        return NBestLines(score, done)
    return TextLines(attention, config.attention.alignments, score)


def _tokens(candidate: Candidate) -> int:
    """Return the number of target tokens, `</s>` of every segment included."""
    return sum(len(target) + 1 for _, target in candidate.segments)


def _given_score(candidate: Candidate, kind: str) -> float:
    """Return the log-probability in nats, or its mean over the tokens; 0 where there are none."""
    return candidate.log_probability / (max(1, _tokens(candidate)) if kind == "mean" else 1)


def _shown(value: float) -> str:
    return f"{value + 0.0:.{_DIGITS}g}"  # 0, not -0


def _rounded(value: float) -> float:
    return float(_shown(value))


def _pharaoh(maps: Sequence[AttentionMap]) -> str:
    return " ".join(f"{source}-{target}" for source, target in word_alignment(maps))
