"""Translate texts of any number and length: one translation for each, in order."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar

from tolka.data.buckets import evenly_longest_first, longest_first
from tolka.search.hypothesis import NO_WISH, Hypothesis, Rendered, Wish
from tolka.system.progress import say
from tolka.text.glossary import Match
from tolka.text.normalization import spelt
from tolka.text.tokenizer.tokenizer import Tokenizer
from tolka.translation.engine import Engine
from tolka.translation.options import DecodingConfig, resolved_split
from tolka.translation.splitting import best_cut, sentences, separator_between
from tolka.translation.terminology import Terminology

if TYPE_CHECKING:
    from tolka.model_directory.read import Folders, SavedModel
    from tolka.search.base import SearchConfig
    from tolka.translation.torch_engine import TorchEngine

_MIN_LENGTH = 16  # subwords as which shorter sentences count in a batch
_DEFAULT_WORKERS = 2  # at most, since each needs memory for a batch of its own
_ROUNDS = 5  # searches of a segment again, at most, until no banned phrase is in its translation
_CPU_BATCH_TOKENS = 4096  # larger batches are hardly faster, and harder to balance between workers at the end
Tick = Callable[[float], object]
E = TypeVar("E", bound=Engine)


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
        """The translation."""
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
        """Number of segments."""
        return len(self.segments)


@dataclass(frozen=True)
class _Segment:
    """A part of a text of at most max_length.

    separator: what joins its translation to the one before. wish: what is wanted of its translation. matches: the
    glossary's terms in it.
    """

    separator: str
    ids: list[int]
    wish: Wish = NO_WISH
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True)
class _Source:
    """A text split into segments: how many sentences it has, and whether one of them was too long."""

    segments: list[_Segment]
    sentences: int
    too_long: bool


@dataclass(frozen=True)
class _PendingBatch:
    """A batch that is being translated: its segments' numbers, their hypotheses, and the ceiling on its tokens."""

    numbers: list[int]
    hypotheses: Future[list[list[Hypothesis]] | None]
    tokens: int


class Translator(Generic[E]):
    """A model with its tokenizer and a search; what computes is its engine.

    translator = Translator.load("runs/sample")
    translator(["I love you.", "A lion sleeps."])  # a list of two translations
    """

    def __init__(
        self,
        engine: E,
        tokenizer: Tokenizer,
        max_length: int,
        tokens: int = DecodingConfig.tokens,
        unicode: str = "keep",
        workers: int = 0,
        split: str = "length",
        languages: tuple[str, str] = ("", ""),
        terminology: Terminology | None = None,
    ) -> None:
        """max_length: subwords of the longest part given to the model. tokens, workers: see DecodingConfig.

        unicode: Unicode form of the model's training text, from CleaningConfig. split: from `resolved_split`.
        languages: the codes of source and target, to split and join sentences. terminology: terms that translations
        must contain, for a search that considers them, and phrases that they must not.
        """
        self.engine = engine
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.tokens = tokens
        self.unicode = unicode
        self.split, self.languages, self.terminology = split, languages, terminology
        self._selection = engine.selection(languages[1])
        self.workers = (workers or min(engine.cpu_threads, _DEFAULT_WORKERS)) if engine.cpu_threads else 1

    @staticmethod
    def load(
        folders: "Folders", search: "SearchConfig | None" = None, decoding: DecodingConfig | None = None
    ) -> "Translator[TorchEngine]":
        """Load a model or a run directory, or several as an ensemble.

        The defaults are beam search of 5 on the best device.
        """
        from tolka.model_directory.read import load_ensemble
        from tolka.search.beam import BeamConfig

        decoding = decoding or DecodingConfig()
        return Translator.of(load_ensemble(folders, decoding.weights), search or BeamConfig(), decoding)

    @staticmethod
    def of(saved: "SavedModel", search: "SearchConfig", decoding: DecodingConfig) -> "Translator[TorchEngine]":
        """Build a translator from a loaded model directory."""
        from tolka.model_directory.read import languages, unicode_form
        from tolka.translation.torch_engine import TorchEngine

        max_length = decoding.max_length or saved.sources.longest
        limits = max_length, decoding.tokens, unicode_form(saved.config), decoding.workers
        engine = TorchEngine.of(saved.model, search, decoding)
        split = resolved_split(decoding.split, saved.sources.several_sentences)
        of_languages = languages(saved.config)
        terminology = Terminology.of(search, saved.tokenizer, limits[2], of_languages, decoding.line_limit)
        return Translator(engine, saved.tokenizer, *limits, split, of_languages, terminology)

    def __repr__(self) -> str:
        source, target = self.languages
        direction = f"{source} to {target}, " if source and target else ""
        return f"Translator({direction}{self.engine}, split={self.split!r}, max_length={self.max_length})"

    def __call__(self, texts: str | Iterable[str], tick: Tick = lambda share: None) -> list[str]:
        """Translate each text, in order; a blank text stays blank. A str is one text. TypeError for other types."""
        return [translation.text for translation in self.translate(texts, tick, scored=False)]

    def translate(
        self,
        texts: str | Iterable[str],
        tick: Tick = lambda share: None,
        scored: bool = True,
        prefixes: Sequence[str] = (),
    ) -> list[Translation]:
        """Translate each text and return details. tick: is called after each batch with its share of the texts.

        scored: whether scores are needed; greedy search is faster without. prefixes: the beginning of each
        translation, "" where it is free; none at all by default.
        """
        sources = [self._segment(text) for text in _as_list(texts)]
        if prefixes:
            sources = [self._begun(*each) for each in zip(sources, prefixes, strict=True)]
        segments = [segment for source in sources for segment in source.segments]
        share = len(sources) / max(1, len(segments))
        found = self._translate_segments(segments, lambda count: tick(count * share), scored)
        results = iter(self._without_banned(segments, found, scored))
        return [self._join(source, list(islice(results, len(source.segments)))) for source in sources]

    def _join(self, source: _Source, results: Sequence[Sequence[Rendered]]) -> Translation:
        """Join the translations of a text's segments: the best ones of all, then the second ones, and so on.

        A segment with fewer of them has its last one in all further places.
        """
        candidates = []
        for place in range(max(map(len, results), default=1)):
            chosen = [each[min(place, len(each) - 1)] for each in results]
            pairs = list(zip(source.segments, chosen, strict=True))
            text = "".join(segment.separator + text for segment, (text, _) in pairs)
            candidates.append(
                Candidate(
                    text,
                    [(segment.ids, hypothesis.tokens) for segment, (_, hypothesis) in pairs],
                    sum(hypothesis.score for _, hypothesis in chosen),
                    all(hypothesis.finished for _, hypothesis in chosen),
                    sum(hypothesis.log_probability for _, hypothesis in chosen),
                    *self._complaints(text, [(segment.matches, text) for segment, (text, _) in pairs]),
                )
            )
        return Translation(candidates, source.too_long, source.sentences, self.split)

    def _complaints(self, text: str, segments: Sequence[tuple[Sequence[Match], str]]) -> tuple[list[str], list[str]]:
        """Return the terms that a translation lacks and the banned phrases that it has.

        segments: of each, the glossary's terms in it, and its translation.
        """
        if self.terminology is None:
            return [], []
        missing = [term for each in segments for term in self.terminology.missing(*each)]
        return missing, self.terminology.banned_in(text)

    def _without_banned(
        self, segments: Sequence[_Segment], results: list[list[Rendered]], scored: bool
    ) -> list[list[Rendered]]:
        """Translate segments again whose translations spell a banned phrase in other subwords, banning those too."""
        if self.terminology is None:
            return results
        for _ in range(_ROUNDS):
            again = dict[int, _Segment]()
            for number, (segment, found) in enumerate(zip(segments, results, strict=True)):
                spellings = [self.terminology.banned_spellings(text, each.tokens) for text, each in found]
                banned = tuple(dict.fromkeys((*segment.wish.banned, *chain.from_iterable(spellings))))
                if banned != segment.wish.banned:
                    again[number] = replace(segment, wish=replace(segment.wish, banned=banned))
            if not again:
                break
            segments = [again.get(number, segment) for number, segment in enumerate(segments)]
            found_again = self._translate_segments(list(again.values()), lambda share: None, scored)
            for number, found in zip(again, found_again, strict=True):
                results[number] = found
        return results

    def _segment(self, text: str) -> _Source:
        """Split a text into segments; none for a blank text, which never reaches the model."""
        text = spelt(text.strip(), self.unicode)
        if not text:
            return _Source([], 0, False)
        parts = sentences(text, self.languages[0])
        segments, separator, too_long = list[_Segment](), "", False
        for part in parts if self.split == "sentences" else [text]:
            content = part.rstrip()
            segments += (part_segments := list(self._split(content, separator)))
            separator = separator_between(part[len(content) :], True, self.languages[1])
            too_long |= len(part_segments) > 1
        return _Source(segments, len(parts), too_long)

    def _begun(self, source: _Source, prefix: str) -> _Source:
        """Return the source with the wish that the translation of its first segment begins with the prefix."""
        (ids,) = self.tokenizer.encode_target([spelt(prefix.strip(), self.unicode)])
        if not ids or not source.segments:
            return source
        first, *others = source.segments
        return replace(source, segments=[replace(first, wish=replace(first.wish, prefix=tuple(ids))), *others])

    def _split(self, text: str, separator: str) -> Iterator[_Segment]:
        """Split at the best place near the middle until each part has at most max_length subwords.

        A single character is never split, however many subwords it has.
        """
        (ids,) = self.tokenizer.encode_source([text])
        cut = best_cut(text) if len(ids) > self.max_length and self.split != "never" else None
        if cut is None:
            matches = self.terminology.matches(text) if self.terminology else ()
            wish = self.terminology.wish(matches) if self.terminology else NO_WISH
            yield _Segment(separator, ids, wish, matches)
            return
        yield from self._split(text[: cut.end], separator)
        separator = separator_between(text[cut.end : cut.start], cut.at_mark, self.languages[1])
        yield from self._split(text[cut.start :], separator)

    def _translate_segments(self, segments: Sequence[_Segment], tick: Tick, scored: bool) -> list[list[Rendered]]:
        """Translate in batches of similar length; return texts and hypotheses of each segment, in order."""
        sources = [segment.ids for segment in segments]
        results: dict[int, list[Rendered]] = {}
        remaining = self._batches(sources, range(len(sources)))
        workers = max(1, min(self.workers, len(remaining)))
        most_pending = 2 * workers if workers > 1 else 1  # two per worker, so that none idles
        pending: deque[_PendingBatch] = deque()
        with self.engine.side_by_side(workers) as threads:
            while remaining or pending:
                while remaining and len(pending) < most_pending:
                    numbers = remaining.popleft()
                    given = [sources[i] for i in numbers], [segments[i].wish for i in numbers]
                    pending.append(
                        _PendingBatch(numbers, threads.submit(self.engine.translate, *given, scored), self.tokens)
                    )
                batch = pending.popleft()
                hypotheses = batch.hypotheses.result()
                if hypotheses is None:
                    self._reduce_batches(batch, max(len(sources[i]) + 1 for i in batch.numbers))
                    remaining = self._batches(sources, [*batch.numbers, *chain.from_iterable(remaining)])
                    continue
                results.update(zip(batch.numbers, self._rendered(hypotheses), strict=True))
                tick(len(batch.numbers))
        return [results[number] for number in range(len(sources))]

    def _rendered(self, hypotheses: list[list[Hypothesis]]) -> list[list[Rendered]]:
        """Return each hypothesis with its text; where the search has a selection, those that it chooses."""
        texts = iter(self.tokenizer.decode_target([each.tokens for found in hypotheses for each in found]))
        if self._selection is not None:
            return [self._selection.select(list(islice(texts, len(found))), found) for found in hypotheses]
        return [[(next(texts), each) for each in found] for found in hypotheses]

    def _reduce_batches(self, batch: _PendingBatch, longest: int) -> None:
        """Halve the ceiling on tokens after a batch that did not fit in memory. longest: its longest sentence."""
        self.engine.free_memory()
        if self.tokens == batch.tokens:  # else another batch under the same ceiling has failed before
            failed = len(batch.numbers) * longest * self.engine.width
            self.tokens = max(1, min(self.tokens, failed) // 2)
            say(f"note: out of memory while translating: continuing with decoding.tokens={self.tokens}")

    def token_scores(
        self, pairs: Sequence[tuple[list[int], list[int]]], tick: Tick = lambda share: None
    ) -> list[list[float]]:
        """Return the log-probability, in nats, of each target token and of `</s>`, for segments of ids, in order.

        tick: is called after each batch with the number of its segments.
        """
        found: dict[int, list[float]] = {}
        lengths = [max(len(source), len(target)) + 1 for source, target in pairs]
        remaining = deque(longest_first(lengths, self.tokens))
        while remaining:
            numbers = remaining.popleft()
            scores = self.engine.score([pairs[i][0] for i in numbers], [pairs[i][1] for i in numbers])
            if scores is None:
                self.engine.free_memory()
                middle = len(numbers) // 2
                remaining.extendleft([numbers[middle:], numbers[:middle]])
                continue
            found.update(zip(numbers, scores, strict=True))
            tick(len(numbers))
        return [found[number] for number in range(len(pairs))]

    def rehearse(self, texts: Sequence[str]) -> None:
        """Translate the longest texts, one batch per worker, to check that they fit in memory."""
        sources = [segment.ids for text in texts for segment in self._segment(text).segments]
        if sources:
            longest = islice(self._batches(sources, range(len(sources))), self.workers)
            chosen = [_Segment("", sources[i]) for i in chain.from_iterable(longest)]
            self._translate_segments(chosen, lambda share: None, scored=False)

    def _batches(self, sources: list[list[int]], numbers: Sequence[int]) -> deque[list[int]]:
        """Return the sentence numbers of each batch; on a CPU they do not depend on the number of threads."""
        # Each hypothesis has logits of the whole vocabulary: a batch must not have too many short sentences.
        lengths = [max(len(sources[i]) + 1, _MIN_LENGTH) for i in numbers]
        ceiling = self.tokens // self.engine.width
        if self.engine.cpu_threads:
            fewest = _DEFAULT_WORKERS * min(2, sum(lengths) // (_CPU_BATCH_TOKENS * _DEFAULT_WORKERS))
            batches = evenly_longest_first(lengths, ceiling, fewest, _DEFAULT_WORKERS)
        else:
            batches = longest_first(lengths, ceiling)
        return deque([numbers[i] for i in rows] for rows in batches)


def _as_list(texts: object) -> list[str]:
    """Return the texts as a list; TypeError unless they are a str or an iterable of them."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a str or several of them, as in ['A sentence.'], not {type(texts).__name__}")
    listed = list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts[{number}] must be a str, not {type(text).__name__}")
    return listed
